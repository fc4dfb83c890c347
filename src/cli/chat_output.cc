#include "cli/chat_output.h"

#include <fmt/format.h>

#include "cli/messages.h"
#include "cli/units.h"

namespace deltafin::cli {

namespace {
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
}

Result<ChatOutput> ChatOutput::create(const text::Tokenizer& tokenizer, const ChatSetup& setup,
                                      Sink reasoning, bool dimmed) {
  const text::ChannelSetup channel_setup{
      setup.chat_template->channels, setup.chat_template->start(setup.options), {}};
  TRY(text::TokenChannels channels, text::TokenChannels::create(tokenizer, channel_setup));
  return ChatOutput(std::move(channels), std::move(reasoning), dimmed);
}

std::string ChatOutput::push(TokenId id) {
  const Result<std::vector<text::ChannelEvent>> events = channels_.push(id);
  if (events) return take(*events);
  return take({{channels_.channel(), std::string(kReplacement), std::nullopt}});
}

std::string ChatOutput::finish(text::OutputEnd end) {
  std::string answer = take(channels_.finish(end));
  end_shown_reasoning();
  return answer;
}

std::string ChatOutput::take(const std::vector<text::ChannelEvent>& events) {
  std::string answer;
  for (const text::ChannelEvent& event : events) {
    if (event.call) {
      calls_.push_back(*event.call);
    } else if (event.channel == text::Channel::Reasoning) {
      reasoning_ += event.text;
      show(event.text);
    } else {
      answer += event.text;
    }
  }
  if (!answer.empty() || !calls_.empty()) end_shown_reasoning();
  return answer;
}

void ChatOutput::show(std::string_view text) {
  if (!show_) return;
  is_showing_ = true;
  show_(dimmed_ ? fmt::format("\x1b[2m{}\x1b[22m", text) : std::string(text));
}

// Reasoning that is over ends with a line break, so that the answer begins on its own line.
void ChatOutput::end_shown_reasoning() {
  if (!is_showing_) return;
  is_showing_ = false;
  show_(reasoning_.ends_with('\n') ? "" : "\n");
}

void warn_of_what_is_not_in_the_answer(const engine::GenerationResult& result,
                                       const ChatOutput& chat) {
  for (const text::ParsedCall& call : chat.calls()) {
    warn(fmt::format("the model called the tool \"{}\", and there are none", call.name));
  }
  if (result.reason == engine::StopReason::MaxTokens &&
      chat.channel() == text::Channel::Reasoning) {
    warn(fmt::format("--max-tokens {} ended within the reasoning: there is no answer",
                     with_separators(result.tokens.size())));
  }
}

}  // namespace deltafin::cli
