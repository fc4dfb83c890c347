#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <sstream>

#include "base/suggestions.h"

namespace deltafin::cli {

namespace {

constexpr size_t kHelpColumn = 28;  // where explanations start
constexpr size_t kHelpWidth = 96;

enum class EntryKind : uint8_t { Argument, Flag, Toggle };

// We read Option::results() afterwards, all of them, so the callback has nothing to do.
CLI::Option* add_text_option(CLI::App& app, const std::string& name) {
  CLI::Option* option = app.add_option(name, [](const CLI::results_t&) { return true; });
  return option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace

struct CommandLine::Entry {
  EntryKind kind;
  std::string name;        // "MODEL", "--seed"
  std::string value = {};  // "N"; empty unless a Flag
  std::string help;
  std::string group;
  Setter setter = {};  // of Argument and Flag
  bool* toggle = nullptr;
  CLI::Option* option = nullptr;  // owned by the parser
};

struct CommandLine::Parser {
  CLI::App app;
  CLI::Option* help = nullptr;
};

CommandLine::CommandLine(std::string usage, std::string about)
    : command_(usage.substr(0, usage.find(' '))),
      usage_(std::move(usage)),
      about_(std::move(about)),
      parser_(std::make_unique<Parser>()) {
  CLI::App& app = parser_->app;
  app.set_help_flag();  // ours does not throw
  app.allow_extras();   // so that we can say what is wrong with them
  app.set_config();     // no flags from files
  app.allow_windows_style_options(false);
  parser_->help = app.add_flag("-h,--help");
}

CommandLine::~CommandLine() = default;

void CommandLine::group(std::string title) { group_ = std::move(title); }

void CommandLine::argument(const char* name, std::string help, std::optional<std::string>& into) {
  entries_.push_back({.kind = EntryKind::Argument,
                      .name = name,
                      .help = std::move(help),
                      .group = group_,
                      .setter = text_into(into),
                      .option = add_text_option(parser_->app, name)});
}

void CommandLine::flag(const char* name, const char* value, std::string help, Setter setter) {
  entries_.push_back({.kind = EntryKind::Flag,
                      .name = name,
                      .value = value,
                      .help = std::move(help),
                      .group = group_,
                      .setter = std::move(setter),
                      .option = add_text_option(parser_->app, name)});
}

void CommandLine::toggle(const char* name, std::string help, bool& into) {
  CLI::Option* option = parser_->app.add_flag(name);
  option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  entries_.push_back({.kind = EntryKind::Toggle,
                      .name = name,
                      .help = std::move(help),
                      .group = group_,
                      .toggle = &into,
                      .option = option});
}

void CommandLine::example(std::string command_line, std::string what) {
  examples_.emplace_back(std::move(command_line), std::move(what));
}

std::vector<std::string> CommandLine::flag_names() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_)
    if (entry.kind != EntryKind::Argument) names.push_back(entry.name);
  return names;
}

std::unexpected<Error> CommandLine::refuse(const std::string& what,
                                           const std::string& advice) const {
  const std::string more =
      advice.empty() ? fmt::format("see: deltafin {} --help", command_) : advice;
  return fail(ErrorCode::Usage, what + "\n  " + more);
}

std::unexpected<Error> CommandLine::refuse_leftover(
    const std::vector<std::string>& leftover) const {
  for (const std::string& word : leftover) {
    if (!word.starts_with('-')) continue;
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> names = flag_names();
    names.push_back("--help");
    const std::optional<std::string> meant = closest(name, names);
    return refuse(fmt::format("{} has no option {}", command_, name),
                  meant ? fmt::format("did you mean {}?", *meant) : "");
  }
  const std::vector<std::string> names = flag_names();
  const bool takes_prompt = std::ranges::find(names, "--prompt") != names.end();
  return refuse(fmt::format("unexpected argument \"{}\"", leftover.front()),
                takes_prompt ? fmt::format("the prompt stands behind a flag: --prompt \"{}\"",
                                           leftover.front())
                             : "");
}

// CLI11 takes the next argument for the value of "--name="; the empty text is what was meant, so
// that is made the next argument.
std::vector<std::string> CommandLine::with_empty_values(
    const std::vector<std::string>& arguments) const {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    result.push_back(argument);
    const bool is_empty_flag = std::ranges::any_of(entries_, [&](const Entry& entry) {
      return entry.kind == EntryKind::Flag && entry.name + "=" == argument;
    });
    if (is_empty_flag) result.emplace_back();
  }
  return result;
}

Status CommandLine::take(Entry& entry) {
  const std::vector<std::string>& values = entry.option->results();
  if (values.empty()) return {};
  if (entry.kind == EntryKind::Toggle) {
    for (const std::string& value : values)
      if (value != "true") return refuse(fmt::format("{} takes no value", entry.name));
    *entry.toggle = true;
    return {};
  }
  if (values.size() > 1) return refuse(fmt::format("{} is given more than once", entry.name));
  const Status status = entry.setter(values.front());
  if (!status) return refuse(fmt::format("{}: {}", entry.name, status.error().what));
  return {};
}

Result<CommandLine::Parsed> CommandLine::parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = with_empty_values(arguments);
  std::ranges::reverse(words);  // what CLI11 wants
  try {
    parser_->app.parse(std::move(words));
  } catch (const CLI::ArgumentMismatch& error) {
    // "--seed: 1 required TEXT missing": the only one of its kind that our options can meet.
    const std::string what = error.what();
    return refuse(fmt::format("{} needs a value", what.substr(0, what.find(':'))));
  } catch (const CLI::Error& error) {
    return refuse(fmt::format("cannot make sense of the arguments: {}", error.what()));
  }
  if (parser_->help->count() > 0) return Parsed::Help;
  std::vector<std::string> leftover = parser_->app.remaining();
  // CLI11 has obeyed it: what follows are arguments.
  std::erase(leftover, "--");
  if (!leftover.empty()) return refuse_leftover(leftover);
  for (Entry& entry : entries_) TRY_STATUS(take(entry));
  return Parsed::Run;
}

std::string CommandLine::help() const {
  std::string text =
      fmt::format("usage: deltafin {}\n\n{}\n", usage_, wrapped(about_, 0, kHelpWidth));
  std::string group;
  const auto line = [&](const std::string& head, const std::string& explanation) {
    const std::string left = "  " + head;
    text += left.size() + 2 > kHelpColumn ? left + "\n" + std::string(kHelpColumn, ' ')
                                          : fmt::format("{:<{}}", left, kHelpColumn);
    text += wrapped(explanation, kHelpColumn, kHelpWidth) + "\n";
  };
  for (const Entry& entry : entries_) {
    if (entry.group != group || &entry == &entries_.front()) {
      group = entry.group;
      text += "\n" + (group.empty() ? "" : group + "\n");
    }
    line(entry.value.empty() ? entry.name : entry.name + " " + entry.value, entry.help);
  }
  text += "\n";
  line("-h, --help", "this text");
  if (!examples_.empty()) text += "\nexamples\n";
  for (const std::pair<std::string, std::string>& example : examples_)
    text += fmt::format("  {}\n      {}\n", example.first, wrapped(example.second, 6, kHelpWidth));
  return text;
}

std::string wrapped(const std::string& text, size_t indent, size_t width) {
  std::string result;
  std::istringstream lines(text);
  size_t column = indent;
  for (std::string line; std::getline(lines, line);) {
    if (!result.empty()) result += "\n" + std::string(indent, ' ');
    column = indent;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const bool first = column == indent;
      if (!first && column + 1 + word.size() > width) {
        result += "\n" + std::string(indent, ' ') + word;
        column = indent + word.size();
      } else {
        result += (first ? "" : " ") + word;
        column += word.size() + (first ? 0 : 1);
      }
    }
  }
  return result;
}

}  // namespace deltafin::cli
