#include "cli/app.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/suggestions.h"
#include "cli/chat_command.h"
#include "cli/doctor_command.h"
#include "cli/inspect_command.h"
#include "cli/logits_command.h"
#include "cli/messages.h"
#include "cli/model_location.h"
#include "cli/plan_command.h"
#include "cli/progress.h"
#include "cli/run_command.h"
#include "cli/serve_command.h"
#include "cli/signals.h"
#include "cli/tokenize_command.h"
#include "io/file.h"

namespace deltafin::cli {

namespace {

struct Command {
  const char* name;
  const char* about;
  Result<int> (*run)(const std::vector<std::string>& arguments, CancelToken& cancel);
};

constexpr std::array kCommands = {
    Command{"chat", "talk with a model; deltafin MODEL does the same", chat_command},
    Command{"run", "continue a prompt", run_command},
    Command{"serve", "an OpenAI-compatible server, and a page to watch it work", serve_command},
    Command{"inspect", "what a checkpoint is, how big, and whether it is complete",
            inspect_command},
    Command{"plan", "what would go where in memory, and how fast it would be", plan_command},
    Command{"logits", "write the logits of every position of a prompt to a file", logits_command},
    Command{"tokenize", "text to token ids and back, with the tokenizer of a model",
            tokenize_command},
    Command{"doctor", "what this machine has, and what would be used of it", doctor_command},
};

std::string overview() {
  std::string text =
      "usage: deltafin COMMAND MODEL [options]\n"
      "       deltafin MODEL [options]\n\n"
      "Runs mixture-of-experts models that are larger than memory, exactly, from their original\n"
      "checkpoints. MODEL is a checkpoint directory, or demo for the bundled model.\n\ncommands\n";
  for (const Command& command : kCommands)
    text += fmt::format("  {:<10}{}\n", command.name, command.about);
  return text +
         "\n  deltafin COMMAND --help   the options of a command, with examples\n"
         "  deltafin --version\n\nexample\n"
         "  deltafin demo\n";
}

std::vector<std::string> words_for_suggestions() {
  std::vector<std::string> words = {"--help", "--version"};
  for (const Command& command : kCommands) words.push_back(command.name);
  return words;
}

bool names_a_model(const std::string& word) {
  const io::PosixStorage storage;
  return word == kBundledModel || word.find('/') != std::string::npos || storage.exists(word);
}

// The first word is none of our commands.
std::unexpected<Error> refuse_command(const std::string& word) {
  const std::optional<std::string> meant = closest(word, words_for_suggestions());
  return fail(ErrorCode::Usage,
              fmt::format("there is no {} {}{}", word.starts_with('-') ? "option" : "command", word,
                          meant ? fmt::format("\n  did you mean {}?", *meant) : ""));
}

Result<int> dispatch(const std::vector<std::string>& arguments, CancelToken& cancel) {
  if (arguments.empty()) return print(overview());
  const std::string& word = arguments.front();
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (word == "--version") return print(fmt::format("deltafin {}\n", version()));
  if (word == "help" && !rest.empty()) return dispatch({rest.front(), "--help"}, cancel);
  if (word == "--help" || word == "-h" || word == "help") return print(overview());
  for (const Command& command : kCommands)
    if (word == command.name) return command.run(rest, cancel);
  if (names_a_model(word)) return chat_command(arguments, cancel);
  return refuse_command(word);
}

// A parent may have closed them, and then the first file we open would be taken for standard
// output.
void open_standard_descriptors() {
  for (int number = 0; number <= 2; ++number)
    // Read-only: what writes to a closed output must fail as it should.
    if (::fcntl(number, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
}

}  // namespace

int run_app(const std::vector<std::string>& arguments) {
  open_standard_descriptors();
  CancelToken& cancel = install_signal_handlers();
  Result<int> code = 0;
  try {
    code = dispatch(arguments, cancel);
  } catch (const std::bad_alloc&) {
    code = fail(ErrorCode::OverBudget,
                "out of memory\n  close other programs, or give a smaller --memory, or a smaller "
                "--expert-cache or --prefill-rows");
  }
  if (code) return *code;
  const bool is_command =
      !arguments.empty() && std::ranges::any_of(kCommands, [&](const Command& command) {
        return arguments.front() == command.name;
      });
  write_to_standard_error(
      error_text(code.error(), is_command ? arguments.front() : "", stop_signal_name()));
  return exit_code(code.error().code);
}

}  // namespace deltafin::cli
