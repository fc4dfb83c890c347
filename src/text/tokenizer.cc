#include "text/tokenizer.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/limits.h"
#include "text/byte_level_tokenizer.h"
#include "text/control_tokens.h"
#include "text/kimi_tokenizer.h"
#include "text/rank_file.h"

namespace deltafin::text {

namespace {

constexpr const char* kRankFile = "tiktoken.model";
constexpr std::string_view kRankFileSuffix = ".tiktoken";
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kByteLevelFile = "tokenizer.json";

// The path of the one rank file in `directory` that has not the usual name.
Result<std::string> find_rank_file(const io::Storage& storage, const std::string& directory) {
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
  if (!found)
    return fail(ErrorCode::BadModel,
                fmt::format("{}: no tokenizer: neither {} nor {} nor a file *{} is there; download "
                            "it from where the model was published",
                            directory, kRankFile, kByteLevelFile, kRankFileSuffix));
  return io::join_path(directory, *found);
}

Result<ControlTokens> read_control_tokens(const io::Storage& storage, const std::string& directory,
                                          TokenId first_id) {
  const std::string path = io::join_path(directory, kConfigFile);
  if (!storage.exists(path)) return ControlTokens::of_k3(first_id);
  TRY(const std::string json, io::read_text(storage, path, limits::kConfigBytes));
  return ControlTokens::from_config(json, path, first_id);
}

Result<std::unique_ptr<Tokenizer>> open_rank_file(const io::Storage& storage,
                                                  const std::string& directory,
                                                  const std::string& path) {
  TRY(const std::string text, io::read_text(storage, path, limits::kRankFileBytes));
  TRY(RankTable ranks, parse_rank_file(text, path));
  const TokenId first_control_id = static_cast<TokenId>(ranks.size());
  TRY(ControlTokens control_tokens, read_control_tokens(storage, directory, first_control_id));
  return make_kimi_tokenizer(std::move(ranks), std::move(control_tokens));
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
  const std::string rank_file = io::join_path(directory, kRankFile);
  if (storage.exists(rank_file)) return open_rank_file(storage, directory, rank_file);
  const std::string byte_level_file = io::join_path(directory, kByteLevelFile);
  if (storage.exists(byte_level_file)) {
    TRY(std::string json, io::read_text(storage, byte_level_file, limits::kTokenizerJsonBytes));
    return make_byte_level_tokenizer(std::move(json), byte_level_file);
  }
  TRY(const std::string other_rank_file, find_rank_file(storage, directory));
  return open_rank_file(storage, directory, other_rank_file);
}

}  // namespace deltafin::text
