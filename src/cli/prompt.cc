#include "cli/prompt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/limits.h"
#include "cli/output_file.h"

namespace deltafin::cli {

namespace {

constexpr const char* kStandardInput = "-";

const char* source_name(const PromptFlags& flags) {
  return flags.ids ? "--ids" : flags.text ? "--prompt" : "--prompt-file";
}

// Opening a pipe waits for its writer.
Result<Descriptor> open_prompt(const std::string& path, const CancelToken& cancel) {
  for (;;) {
    TRY_STATUS(cancel.check());
    Descriptor descriptor(path == kStandardInput ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                                 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (descriptor.is_open()) return descriptor;
    if (errno != EINTR)
      return fail(ErrorCode::Io, fmt::format("cannot open {}: {}", path, system_error(errno)));
  }
}

}  // namespace

void PromptFlags::declare(CommandLine& line) {
  line.group("prompt (exactly one)");
  line.flag("--prompt", "TEXT", "plain text: what spells a control token is encoded as text",
            text_into(text));
  line.flag("--prompt-file", "FILE", "the same from a file, every byte of it; - is standard input",
            text_into(file));
  line.flag("--ids", "LIST", "token ids such as 1,2,3; needs no tokenizer", ids_into(ids));
  line.toggle("--parse-special", "read spellings of control tokens in the text as those tokens",
              parse_special);
}

Status PromptFlags::check() const {
  const int count = int(text.has_value()) + int(file.has_value()) + int(ids.has_value());
  if (count == 0)
    return fail(ErrorCode::Usage,
                "there is no prompt\n  give --prompt TEXT, --prompt-file FILE or --ids 1,2,3");
  if (count > 1)
    return fail(ErrorCode::Usage,
                "there is more than one prompt\n  give one of --prompt, --prompt-file and --ids");
  if (ids && parse_special)
    return fail(ErrorCode::Usage, "--parse-special is about text, and --ids has none\n  drop one");
  return {};
}

Result<std::string> read_prompt_file(const std::string& path, const CancelToken& cancel) {
  TRY(const Descriptor descriptor, open_prompt(path, cancel));
  std::string text;
  std::vector<char> buffer(1 << 16);
  for (;;) {
    const ssize_t got = ::read(descriptor.get(), buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR)
      return fail(ErrorCode::Io, fmt::format("cannot read {}: {}", path, system_error(errno)));
    if (got < 0) {
      TRY_STATUS(cancel.check());
      continue;
    }
    text.append(buffer.data(), static_cast<size_t>(got));
    if (text.size() > limits::kPromptBytes)
      return fail(ErrorCode::Usage,
                  fmt::format("{} has more than the {} bytes that a prompt may have", path,
                              limits::kPromptBytes));
  }
}

Result<std::string> read_prompt_text(const PromptFlags& flags, const CancelToken& cancel) {
  if (flags.text) return *flags.text;
  if (!flags.file) return std::string();
  Result<std::string> text = read_prompt_file(*flags.file, cancel);
  if (!text) return std::unexpected(std::move(text).error().within("--prompt-file"));
  return text;
}

Result<std::unique_ptr<text::Tokenizer>> open_prompt_tokenizer(const io::Storage& storage,
                                                               const std::string& directory) {
  Result<std::unique_ptr<text::Tokenizer>> tokenizer = text::open_tokenizer(storage, directory);
  if (!tokenizer)
    return fail(tokenizer.error().code,
                tokenizer.error().what + "\n  without a tokenizer, give token ids: --ids 1,2,3");
  return tokenizer;
}

Status check_prompt_tokens(const std::string& source, const std::vector<TokenId>& ids,
                           const checkpoint::ModelContract& contract) {
  const uint32_t vocab_size = contract.vocab_size();
  const auto outside = std::ranges::find_if(
      ids, [&](TokenId id) { return id < 0 || static_cast<uint32_t>(id) >= vocab_size; });
  if (outside != ids.end())
    return fail(
        ErrorCode::Usage,
        fmt::format("{}: found token id {} in place {}, expected 0 to {}: the model has {} of "
                    "them",
                    source, *outside, outside - ids.begin() + 1, vocab_size - 1, vocab_size));
  if (ids.size() > contract.max_positions)
    return fail(ErrorCode::Usage,
                fmt::format("{}: the prompt has {} tokens, more than the {} positions of the model",
                            source, ids.size(), contract.max_positions));
  return {};
}

Result<std::vector<TokenId>> prompt_tokens(const PromptFlags& flags, const std::string& text,
                                           const text::Tokenizer* tokenizer,
                                           const checkpoint::ModelContract& contract) {
  std::vector<TokenId> ids;
  if (flags.ids) {
    ids = *flags.ids;
  } else {
    if (text.empty())
      return fail(ErrorCode::Usage,
                  fmt::format("{}: the prompt is empty; it needs at least one character",
                              source_name(flags)));
    Result<std::vector<TokenId>> encoded = tokenizer->encode(
        text, flags.parse_special ? text::SpecialTokens::Parse : text::SpecialTokens::AsText);
    if (!encoded) return std::unexpected(std::move(encoded).error().within(source_name(flags)));
    ids = std::move(*encoded);
  }
  TRY_STATUS(check_prompt_tokens(source_name(flags), ids, contract));
  return ids;
}

}  // namespace deltafin::cli
