#include "cli/tokenize_command.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/command_line.h"
#include "cli/events.h"
#include "cli/messages.h"
#include "cli/model_location.h"
#include "cli/prompt.h"
#include "cli/tokenize_report.h"

namespace deltafin::cli {

namespace {

struct TokenizeFlags {
  std::optional<std::string> model, text, file;
  bool parse_special = false, decode = false, json = false;

  void declare(CommandLine& line);
  Status check() const;
  // Where the input comes from, for messages.
  const char* source_name() const {
    return text ? "--prompt" : file ? "--prompt-file" : "standard input";
  }
};

void TokenizeFlags::declare(CommandLine& line) {
  line.argument(
      "MODEL",
      "a folder with a tokenizer, such as a checkpoint directory, or demo for the bundled "
      "model (./demo for a folder)",
      model);
  line.group("input (default: standard input)");
  line.flag("--prompt", "TEXT", "the text; with --decode the ids", text_into(text));
  line.flag("--prompt-file", "FILE", "the same from a file, every byte of it", text_into(file));
  line.group("");
  line.toggle("--parse-special",
              "read spellings of control tokens in the text as those tokens; without it they are "
              "text like any other",
              parse_special);
  line.toggle("--decode", "the other way: token ids such as 1,2,3 to text", decode);
  line.toggle("--json", "print one JSON object, with the bytes of each token", json);
  line.example("deltafin tokenize demo --prompt \"The capital of France is\"",
               "token ids, in the form that --ids reads");
  line.example("deltafin tokenize ~/models/kimi-k3 < book.txt | tr , '\\n' | wc -l",
               "how many tokens a text has");
  line.example("deltafin tokenize demo --decode --prompt 71,368,283", "and back");
}

Status TokenizeFlags::check() const {
  TRY_STATUS(required_model(model, "tokenize"));
  if (text && file)
    return fail(ErrorCode::Usage,
                "there is more than one input\n  give one of --prompt and --prompt-file");
  if (decode && parse_special)
    return fail(ErrorCode::Usage,
                "--parse-special is about text, and --decode reads ids\n  drop one");
  return {};
}

CommandLine tokenize_line() {
  return {"tokenize MODEL [--prompt TEXT | --prompt-file FILE] [options]",
          "Turns text into the token ids of a model, or ids into text. Needs only the tokenizer of "
          "the model, no weights."};
}

Result<std::string> read_input(const TokenizeFlags& flags, const CancelToken& cancel) {
  if (flags.text) return *flags.text;
  return read_prompt_file(flags.file.value_or("-"), cancel);
}

// "1,2,3", with a line end behind it or not; nothing is no ids.
Result<std::vector<TokenId>> ids_in(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::vector<TokenId>();
  return parse_ids(text.substr(0, text.find_last_not_of("\r\n") + 1));
}

Result<std::vector<TokenId>> ids_of(const TokenizeFlags& flags, const text::Tokenizer& tokenizer,
                                    std::string_view input) {
  if (flags.decode) return ids_in(input);
  return tokenizer.encode(
      input, flags.parse_special ? text::SpecialTokens::Parse : text::SpecialTokens::AsText);
}

Result<std::string> output_of(const TokenizeFlags& flags, const std::string& directory,
                              const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  if (flags.json) {
    TRY(const nlohmann::ordered_json report, tokenize_json(tokenizer, directory, ids));
    return to_document(report);
  }
  if (flags.decode) return decoded(tokenizer, ids);
  return id_list(ids) + "\n";
}

Result<std::string> tokenize(const TokenizeFlags& flags, const std::string& directory,
                             const text::Tokenizer& tokenizer, const CancelToken& cancel) {
  TRY(const std::string input, read_input(flags, cancel));
  TRY(const std::vector<TokenId> ids, ids_of(flags, tokenizer, input));
  return output_of(flags, directory, tokenizer, ids);
}

}  // namespace

Result<int> tokenize_command(const std::vector<std::string>& arguments, CancelToken& cancel) {
  TokenizeFlags flags;
  CommandLine line = tokenize_line();
  flags.declare(line);
  TRY(const CommandLine::Parsed parsed, line.parse(arguments));
  if (parsed == CommandLine::Parsed::Help) return print(line.help());
  TRY_STATUS(flags.check());
  const io::PosixStorage storage;
  TRY(const std::string directory, find_model(storage, *flags.model));
  TRY(const std::unique_ptr<text::Tokenizer> tokenizer, text::open_tokenizer(storage, directory));
  Result<std::string> output = tokenize(flags, directory, *tokenizer, cancel);
  if (!output) return std::unexpected(std::move(output).error().within(flags.source_name()));
  return print(*output);
}

}  // namespace deltafin::cli
