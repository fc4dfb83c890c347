#include "cli/generation_defaults.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "checkpoint/config_fields.h"
#include "checkpoint/json_document.h"

namespace deltafin::cli {

namespace {

constexpr const char* kFile = "generation_config.json";
constexpr checkpoint::IntegerRange kTokenIds{.least = 0, .most = limits::kVocabulary - 1};
constexpr size_t kEosIdsMost = 64;

Result<std::vector<TokenId>> read_eos_ids(checkpoint::Fields& fields) {
  constexpr const char* kName = "eos_token_id";
  const nlohmann::json* value = fields.find(kName);
  if (value == nullptr) return std::vector<TokenId>();
  std::vector<uint64_t> ids;
  if (value->is_array()) {
    TRY(ids, fields.integers(kName, kTokenIds, kEosIdsMost));
  } else {
    TRY(const uint64_t id, fields.integer(kName, kTokenIds));
    ids.push_back(id);
  }
  std::vector<TokenId> result;
  for (const uint64_t id : ids) result.push_back(static_cast<TokenId>(id));
  return result;
}

}  // namespace

Result<GenerationDefaults> parse_generation_defaults(std::string_view json) {
  TRY(const nlohmann::json object, checkpoint::parse_json_object(json));
  checkpoint::Fields fields(object, "");
  GenerationDefaults defaults;
  TRY(defaults.eos_ids, read_eos_ids(fields));
  TRY(defaults.temperature, fields.optional_real("temperature", {.least = 0, .most = 1e6}));
  TRY(defaults.top_p, fields.optional_real("top_p", {.least = 1e-6, .most = 1}));
  TRY(defaults.min_p, fields.optional_real("min_p", {.least = 0, .most = 0.999999}));
  TRY(defaults.repetition_penalty,
      fields.optional_real("repetition_penalty", {.least = 1e-6, .most = 1e6}));
  TRY(const std::optional<uint64_t> top_k,
      fields.optional_integer("top_k", {.least = 0, .most = limits::kVocabulary}));
  if (top_k) defaults.top_k = static_cast<uint32_t>(*top_k);
  return defaults;
}

Result<GenerationDefaults> load_generation_defaults(const io::Storage& storage,
                                                    const std::string& directory) {
  const std::string path = io::join_path(directory, kFile);
  if (!storage.exists(path)) return GenerationDefaults();
  TRY(const std::string text, io::read_text(storage, path, limits::kConfigBytes));
  Result<GenerationDefaults> defaults = parse_generation_defaults(text);
  if (!defaults) return std::unexpected(std::move(defaults).error().within(path));
  return defaults;
}

std::vector<TokenId> stop_tokens(const GenerationDefaults& defaults,
                                 std::optional<TokenId> eos_token_id,
                                 std::optional<TokenId> end_of_turn) {
  std::vector<TokenId> ids = defaults.eos_ids;
  if (eos_token_id) ids.push_back(*eos_token_id);
  if (end_of_turn) ids.push_back(*end_of_turn);
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  return ids;
}

}  // namespace deltafin::cli
