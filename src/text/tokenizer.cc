#include "text/tokenizer.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/limits.h"
#include "text/control_tokens.h"
#include "text/kimi_tokenizer.h"
#include "text/rank_file.h"

namespace deltafin::text {

namespace {

constexpr const char* kRankFile = "tiktoken.model";
constexpr std::string_view kRankFileSuffix = ".tiktoken";
constexpr const char* kConfigFile = "tokenizer_config.json";
// What other families have instead.
constexpr const char* kUnsupportedFile = "tokenizer.json";

// The path of the one rank file in `directory`.
Result<std::string> find_rank_file(const io::Storage& storage, const std::string& directory) {
  const std::string usual = io::join_path(directory, kRankFile);
  if (storage.exists(usual)) return usual;
  TRY(const std::vector<io::DirectoryEntry> entries, storage.list(directory));
  std::optional<std::string> found;
  for (const io::DirectoryEntry& entry : entries) {
    if (entry.is_directory || !entry.name.ends_with(kRankFileSuffix)) continue;
    if (found)
      return fail(ErrorCode::BadModel,
                  fmt::format("{}: two rank files, {} and {}; remove the one that is not this "
                              "model's, or name the right one {}",
                              directory, *found, entry.name, kRankFile));
    found = entry.name;
  }
  if (!found && storage.exists(io::join_path(directory, kUnsupportedFile)))
    return fail(ErrorCode::BadModel,
                fmt::format("{}: byte-level BPE tokenizers are not supported yet",
                            io::join_path(directory, kUnsupportedFile)));
  if (!found)
    return fail(
        ErrorCode::BadModel,
        fmt::format("{}: no tokenizer: neither {} nor a file *{} is there; download it from "
                    "where the model was published",
                    directory, kRankFile, kRankFileSuffix));
  return io::join_path(directory, *found);
}

Result<ControlTokens> read_control_tokens(const io::Storage& storage, const std::string& directory,
                                          TokenId first_id) {
  const std::string path = io::join_path(directory, kConfigFile);
  if (!storage.exists(path)) return ControlTokens::of_k3(first_id);
  TRY(const std::string json, io::read_text(storage, path, limits::kConfigBytes));
  return ControlTokens::from_config(json, path, first_id);
}

}  // namespace

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) {
    TRY(const std::string_view bytes, bytes_of(id));
    text += bytes;
  }
  return text;
}

Result<std::unique_ptr<Tokenizer>> open_tokenizer(const io::Storage& storage,
                                                  const std::string& directory) {
  TRY(const std::string path, find_rank_file(storage, directory));
  TRY(const std::string text, io::read_text(storage, path, limits::kRankFileBytes));
  TRY(RankTable ranks, parse_rank_file(text, path));
  const TokenId first_control_id = static_cast<TokenId>(ranks.size());
  TRY(ControlTokens control_tokens, read_control_tokens(storage, directory, first_control_id));
  return KimiTokenizer::create(std::move(ranks), std::move(control_tokens));
}

}  // namespace deltafin::text
