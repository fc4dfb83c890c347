// The arguments of one command: what it takes, its help text, and errors that say what to do.
//
// CLI11 takes the arguments apart; everything a user reads is ours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flag_values.h"

namespace deltafin::cli {

class CommandLine {
 public:
  // `usage`: what follows "deltafin", as in "run MODEL --prompt TEXT [options]"; its first word is
  // the command. `about`: one or more sentences.
  CommandLine(std::string usage, std::string about);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // The help text shows arguments, flags and switches in the order of these calls, under the last
  // group. What they fill must outlive parse().
  void group(std::string title);
  // An argument without a dash; `name` in capitals.
  void argument(const char* name, std::string help, std::optional<std::string>& into);
  // A flag with a value, given at most once. `name` starts with "--"; `value` in capitals.
  void flag(const char* name, const char* value, std::string help, Setter setter);
  // A flag without one.
  void toggle(const char* name, std::string help, bool& into);
  void example(std::string command_line, std::string what);

  enum class Parsed : uint8_t { Run, Help };
  // Fills everything that was given. Asking for help wins over every mistake.
  // Errors: Usage; the first line is what is wrong, further lines are advice.
  Result<Parsed> parse(const std::vector<std::string>& arguments);

  const std::string& command() const { return command_; }
  std::string help() const;
  // "--prompt", ..., in the order of declaration, without --help.
  std::vector<std::string> flag_names() const;

 private:
  struct Entry;
  struct Parser;

  std::unexpected<Error> refuse(const std::string& what, const std::string& advice = "") const;
  std::unexpected<Error> refuse_leftover(const std::vector<std::string>& leftover) const;
  std::vector<std::string> with_empty_values(const std::vector<std::string>& arguments) const;
  Status take(Entry& entry);

  std::string command_, usage_, about_;
  std::vector<Entry> entries_;
  std::vector<std::pair<std::string, std::string>> examples_;
  std::string group_;
  std::unique_ptr<Parser> parser_;
};

// Words of `text` in lines of at most `width` characters, all but the first indented by `indent`.
// Line breaks in the text stay.
std::string wrapped(const std::string& text, size_t indent, size_t width);

}  // namespace deltafin::cli
