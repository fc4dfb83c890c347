// Where the prompt comes from.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "base/token.h"
#include "checkpoint/contract.h"
#include "cli/command_line.h"
#include "io/file.h"
#include "text/tokenizer.h"

namespace deltafin::cli {

struct PromptFlags {
  std::optional<std::string> text, file;
  std::optional<std::vector<TokenId>> ids;
  bool parse_special = false;

  // The flags must outlive the command line's parse().
  void declare(CommandLine& line);
  bool is_given() const { return text || file || ids; }
  // Errors: Usage unless there is exactly one source.
  Status check() const;
};

// The bytes of `path`, which may be a pipe, or "-" for standard input. Waiting ends with Cancelled.
// Errors: Io; Usage for more than limits::kPromptBytes; Cancelled.
Result<std::string> read_prompt_file(const std::string& path, const CancelToken& cancel);

// The text of the flags as it is; empty when they have ids. Errors: see read_prompt_file.
Result<std::string> read_prompt_text(const PromptFlags& flags, const CancelToken& cancel);

// The tokenizer of `directory`; its errors also say, in a line of their own, how to do without one.
Result<std::unique_ptr<text::Tokenizer>> open_prompt_tokenizer(const io::Storage& storage,
                                                               const std::string& directory);

// The tokens of the prompt: the ids of the flags, or else `text` in tokens. `tokenizer` may be null
// only if the flags have ids. Errors: Usage, for no token at all, text that is not UTF-8, an id
// outside the vocabulary, or more tokens than the model has positions.
Result<std::vector<TokenId>> prompt_tokens(const PromptFlags& flags, const std::string& text,
                                           const text::Tokenizer* tokenizer,
                                           const checkpoint::ModelContract& contract);

// Whether the model can read these tokens, which `source` has given. Errors: Usage, for an id
// outside the vocabulary, or more tokens than the model has positions.
Status check_prompt_tokens(const std::string& source, const std::vector<TokenId>& ids,
                           const checkpoint::ModelContract& contract);

}  // namespace deltafin::cli
