#include "cli/chat_flags.h"

#include <fmt/format.h>

#include "text/chat/turn_prompt.h"

namespace deltafin::cli {

namespace {

// "on" or "off".
Setter switch_into(std::optional<bool>& into) {
  return [&into](std::string_view text) -> Status {
    if (text != "on" && text != "off")
      return fail(ErrorCode::Usage, fmt::format("found \"{}\", expected on or off", text));
    into = text == "on";
    return {};
  };
}

Result<const text::ChatTemplate*> template_of(const ChatFlags& flags, const io::Storage& storage,
                                              const std::string& directory) {
  if (!flags.template_name) return text::choose_template(storage, directory);
  if (const text::ChatTemplate* named = text::find_template(*flags.template_name)) return named;
  return fail(ErrorCode::Usage, fmt::format("--template: found \"{}\", expected one of {}",
                                            *flags.template_name, text::template_names()));
}

// What a template would ignore was not what the user wanted.
Status check_options(const ChatFlags& flags, const text::ChatTemplate& chat_template) {
  text::ChatOptions on, off;
  on.thinking = true;
  off.thinking = false;
  const bool can_choose = chat_template.start(on) != chat_template.start(off);
  if (flags.thinking && !can_choose)
    return fail(
        ErrorCode::Usage,
        fmt::format("--thinking: the template {} leaves that to the model", chat_template.name));
  if (flags.effort && chat_template.channels != text::ChannelFormat::KimiK3)
    return fail(ErrorCode::Usage,
                fmt::format("--effort: the template {} has none", chat_template.name));
  return {};
}

}  // namespace

void ChatFlags::declare(CommandLine& line) {
  line.group("chat");
  line.toggle("--chat",
              "the prompt is a message of a user: the model's own template is put around it, and "
              "only the answer is printed",
              chat);
  declare_for_chat(line);
}

void ChatFlags::declare_for_chat(CommandLine& line) {
  line.flag("--system", "TEXT", "a system message in front of it", text_into(system));
  declare_for_server(line);
  line.toggle("--show-reasoning", "print the reasoning to standard error as it comes",
              show_reasoning);
}

void ChatFlags::declare_for_server(CommandLine& line) {
  line.flag("--thinking", "on|off", "whether the model reasons first (default: its template's)",
            switch_into(thinking));
  line.flag("--effort", "LEVEL", "how much it reasons: low, high or max (Kimi K3; default: max)",
            text_into(effort));
  line.flag("--template", "NAME",
            "instead of the template that the model's directory asks for, one of " +
                text::template_names(),
            text_into(template_name));
}

Status ChatFlags::check(const PromptFlags& prompt, const StateFlags& state) const {
  const auto refuse = [](const char* flag, const char* why) {
    return fail(ErrorCode::Usage, fmt::format("{} {}\n  drop one", flag, why));
  };
  if (chat) {
    if (prompt.ids) return refuse("--chat", "is about text, and --ids has none");
    if (prompt.parse_special)
      return refuse("--chat", "puts control tokens itself; --parse-special would let the message");
    if (state.load)
      return refuse("--chat", "begins a conversation; --load-state goes on with text");
    return {};
  }
  const char* given = system           ? "--system"
                      : thinking       ? "--thinking"
                      : effort         ? "--effort"
                      : show_reasoning ? "--show-reasoning"
                      : template_name  ? "--template"
                                       : nullptr;
  if (given == nullptr) return {};
  return fail(ErrorCode::Usage, fmt::format("{} is for --chat only\n  add --chat", given));
}

Result<ChatSetup> make_chat_setup(const ChatFlags& flags, const text::Tokenizer& tokenizer,
                                  const io::Storage& storage, const std::string& directory) {
  ChatSetup setup{};
  TRY(setup.chat_template, template_of(flags, storage, directory));
  TRY_STATUS(text::check_vocabulary(*setup.chat_template, tokenizer));
  TRY_STATUS(check_options(flags, *setup.chat_template));
  setup.options.thinking = flags.thinking;
  setup.options.effort = flags.effort;
  TRY(const std::vector<TokenId> end,
      tokenizer.encode(setup.chat_template->end_of_turn, text::SpecialTokens::Parse));
  setup.end_of_turn = end.front();  // the only one, says check_vocabulary()
  return setup;
}

text::Conversation beginning_of_chat(const ChatFlags& flags) {
  text::Conversation conversation;
  if (flags.system) {
    text::Message& system = conversation.messages.emplace_back();
    system.role = text::Role::System;
    system.content = *flags.system;
  }
  return conversation;
}

Result<ChatPrompt> make_chat_prompt(const ChatFlags& flags, const std::string& message,
                                    const text::Tokenizer& tokenizer, const io::Storage& storage,
                                    const std::string& directory) {
  if (message.empty())
    return fail(ErrorCode::Usage, "--chat: the message is empty; it needs at least one character");
  TRY(ChatSetup setup, make_chat_setup(flags, tokenizer, storage, directory));
  text::Conversation conversation = beginning_of_chat(flags);
  conversation.messages.emplace_back().content = message;
  Result<std::vector<TokenId>> ids =
      text::conversation_tokens(*setup.chat_template, setup.options, tokenizer, conversation);
  if (!ids) return std::unexpected(std::move(ids).error().within("--chat"));
  return ChatPrompt{std::move(setup), *std::move(ids)};
}

}  // namespace deltafin::cli
