#include "cli/chat_session.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/events.h"
#include "text/chat/json_value.h"

namespace deltafin::cli {

namespace {

constexpr const char* kSchema = "deltafin.chat.v1";

size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

bool goes_on_from(std::span<const TokenId> prompt, std::span<const TokenId> state) {
  // The last token is read again if need be: only a pass gives the logits that choose the next.
  return !state.empty() && state.size() < prompt.size() &&
         common_prefix(prompt, state) == state.size();
}

const char* role_name(text::Role role) {
  switch (role) {
    case text::Role::System:
      return "system";
    case text::Role::User:
      return "user";
    case text::Role::Assistant:
      return "assistant";
    case text::Role::Tool:
      return "tool";
  }
  return "";
}

}  // namespace

size_t ChatSession::turn_count() const {
  return static_cast<size_t>(
      std::ranges::count(conversation_.messages, text::Role::Assistant, &text::Message::role));
}

Result<text::TurnPrompt> ChatSession::prompt_for(const std::string& question) const {
  if (question.empty())
    return fail(ErrorCode::Usage,
                "the message is empty\n  it needs at least one character; /help says more");
  text::Conversation asked = conversation_;
  asked.messages.emplace_back().content = question;
  return text::make_turn_prompt(*setup_.chat_template, setup_.options, tokenizer_, asked);
}

void ChatSession::add_turn(const std::string& question, const std::string& reasoning,
                           const std::string& answer) {
  conversation_.messages.emplace_back().content = question;
  text::Message& message = conversation_.messages.emplace_back();
  message.role = text::Role::Assistant;
  message.content = answer;
  if (!reasoning.empty()) message.reasoning_content = reasoning;
}

std::string ChatSession::to_json() const {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (const text::Message& message : conversation_.messages) {
    nlohmann::ordered_json& entry = messages.emplace_back();
    entry["role"] = role_name(message.role);
    entry["content"] = text::text_of(message.content);
    if (message.reasoning_content) entry["reasoning_content"] = *message.reasoning_content;
  }
  return to_document({{"schema", kSchema}, {"messages", std::move(messages)}});
}

Status ChatSession::load_json(std::string_view json) {
  TRY(const text::JsonValue root, text::parse_json(json, text::JsonDialect::Strict));
  const text::JsonValue* schema = root.find("schema");
  const text::JsonValue* messages = root.find("messages");
  if (schema == nullptr || schema->as_string() == nullptr || *schema->as_string() != kSchema ||
      messages == nullptr)
    return fail(ErrorCode::Usage,
                std::string("schema: expected ") + kSchema + ", which /save writes");
  TRY(text::Conversation loaded, text::parse_conversation(*messages, text::JsonValue{}));
  conversation_ = std::move(loaded);
  return {};
}

ReuseFrom choose_reuse(std::span<const TokenId> prompt, std::span<const TokenId> sequence,
                       std::span<const TokenId> border) {
  const bool sequence_serves = goes_on_from(prompt, sequence);
  const bool border_serves = goes_on_from(prompt, border);
  if (sequence_serves && (!border_serves || sequence.size() >= border.size()))
    return ReuseFrom::Sequence;
  return border_serves ? ReuseFrom::Border : ReuseFrom::Nothing;
}

}  // namespace deltafin::cli
