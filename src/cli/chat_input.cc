#include "cli/chat_input.h"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

#include "base/suggestions.h"
#include "cli/flag_values.h"

namespace deltafin::cli {

namespace {

struct CommandForm {
  std::string_view name;
  ChatCommand::Kind kind;
  bool takes_file;
  std::string_view about;
};

constexpr std::array kForms = {
    CommandForm{"/new", ChatCommand::Kind::New, false, "forget the conversation and begin another"},
    CommandForm{"/save", ChatCommand::Kind::Save, true,
                "write the conversation to FILE, and what the model has read to FILE.state"},
    CommandForm{"/load", ChatCommand::Kind::Load, true, "go on with such a conversation"},
    CommandForm{"/stats", ChatCommand::Kind::Stats, false,
                "how much of the last turn was read anew, how fast, and how full the context is"},
    CommandForm{"/help", ChatCommand::Kind::Help, false, "this text"}};

std::string usage_of(const CommandForm& form) {
  return fmt::format("{}{}", form.name, form.takes_file ? " FILE" : "");
}

std::unexpected<Error> refuse_name(std::string_view name) {
  std::vector<std::string> names;
  std::string all;
  for (const CommandForm& form : kForms) {
    names.emplace_back(form.name);
    all += fmt::format("{}{}", all.empty() ? "" : ", ", usage_of(form));
  }
  const std::optional<std::string> meant = closest(name, names);
  return fail(ErrorCode::Usage,
              fmt::format("there is no command {}{}\n  the commands are {}; a message that begins "
                          "with a slash begins with two",
                          name, meant ? fmt::format(", did you mean {}?", *meant) : "", all));
}

}  // namespace

Result<ChatInput> parse_chat_input(std::string_view text) {
  if (text.starts_with("//")) return ChatMessage{std::string(text.substr(1))};
  if (!text.starts_with('/')) return ChatMessage{std::string(text)};
  const size_t end = text.find_first_of(" \t\r\n");
  const std::string_view name = text.substr(0, end);
  const std::string_view rest =
      end == std::string_view::npos ? std::string_view() : trimmed(text.substr(end));
  for (const CommandForm& form : kForms) {
    if (name != form.name) continue;
    if (form.takes_file == !rest.empty()) return ChatCommand{form.kind, std::string(rest)};
    return fail(
        ErrorCode::Usage,
        form.takes_file
            ? fmt::format("{} needs the name of a file\n  {}", name, usage_of(form))
            : fmt::format("{} takes nothing, and found \"{}\"\n  leave that out", name, rest));
  }
  return refuse_name(name);
}

std::string chat_input_help() {
  std::string text;
  for (const CommandForm& form : kForms)
    text += fmt::format("  {:<12}{}\n", usage_of(form), form.about);
  return text +
         "  //text      a message that begins with a slash\n"
         "A line that ends in a backslash goes on in the next.\n"
         "Ctrl-C stops an answer, Ctrl-D leaves.\n";
}

bool ChatLines::add(std::string_view line) {
  if (is_open_) text_ += '\n';
  is_open_ = line.ends_with('\\');
  if (is_open_) line.remove_suffix(1);
  text_ += line;
  return !is_open_;
}

std::string ChatLines::take() {
  is_open_ = false;
  return std::exchange(text_, {});
}

}  // namespace deltafin::cli
