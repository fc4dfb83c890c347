#include "text/control_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/limits.h"

namespace deltafin::text {

namespace {

// Kimi K3's, as distances from its first control token, 163584.
constexpr std::pair<size_t, std::string_view> kK3Names[] = {
    {0, "[BOS]"},
    {1, "[EOS]"},
    {2, "<|end_of_msg|>"},
    {3, "<|open|>"},
    {4, "<|close|>"},
    {5, "<|sep|>"},
    {6, "[start_header_id]"},
    {7, "[end_header_id]"},
    {9, "[EOT]"},
    {18, "<|media_begin|>"},
    {19, "<|media_content|>"},
    {20, "<|media_end|>"},
    {21, "<|media_pad|>"},
    {65, "<osagent_mode>"},
    {254, "[UNK]"},
    {255, "[PAD]"},
};

using Names = std::vector<std::string>;  // by distance from the first id; empty: not named

Names k3_names() {
  Names names(kKimiControlTokenCount);
  for (const auto& [distance, name] : kK3Names) names[distance] = name;
  return names;
}

constexpr const char* kField = "added_tokens_decoder";

// An id as a JSON key: decimal, the one way to write it.
std::optional<TokenId> parse_id(const std::string& key) {
  TokenId id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || std::to_string(id) != key) return std::nullopt;
  return id;
}

Result<Names> read_names(std::string_view json, const std::string& path, TokenId first_id) {
  const nlohmann::json config = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return fail(ErrorCode::BadModel, path + ": not a JSON object");
  if (!config.contains(kField)) return k3_names();
  const nlohmann::json& decoder = config[kField];
  if (!decoder.is_object())
    return fail(ErrorCode::BadModel,
                fmt::format("{}: {} must be an object from id to token, but it "
                            "is of type {}",
                            path, kField, decoder.type_name()));
  Names names(kKimiControlTokenCount);
  for (const auto& [key, token] : decoder.items()) {
    const std::optional<TokenId> id = parse_id(key);
    const int64_t distance = id ? int64_t{*id} - first_id : -1;
    if (distance < 0 || distance >= static_cast<int64_t>(kKimiControlTokenCount))
      return fail(
          ErrorCode::BadModel,
          fmt::format("{}: {} names id \"{}\", but the control tokens of this vocabulary are "
                      "{}..{}; the file must be the one published with the rank file",
                      path, kField, key, first_id,
                      static_cast<size_t>(first_id) + kKimiControlTokenCount - 1));
    const bool has_spelling = token.is_object() && token.contains("content") &&
                              token["content"].is_string() &&
                              !token["content"].get_ref<const std::string&>().empty();
    if (!has_spelling)
      return fail(ErrorCode::BadModel, fmt::format("{}: {}.{}.content must be a string that is not "
                                                   "empty",
                                                   path, kField, key));
    names[static_cast<size_t>(distance)] = token["content"].get<std::string>();
  }
  return names;
}

Names kimi_spellings(TokenId first_id, Names names) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i].empty())
      names[i] = fmt::format("<|reserved_token_{}|>", static_cast<size_t>(first_id) + i);
  return names;
}

}  // namespace

ControlTokens::ControlTokens(TokenId first_id, std::vector<std::string> spellings)
    : first_id_(first_id), spellings_(std::move(spellings)), sorted_(spellings_.size()) {
  for (const std::string& spelling : spellings_) {
    CHECK(!spelling.empty());
    if (first_bytes_.find(spelling[0]) == std::string::npos) first_bytes_ += spelling[0];
  }
  std::iota(sorted_.begin(), sorted_.end(), size_t{0});
  std::ranges::sort(sorted_, {}, [&](size_t i) -> const std::string& { return spellings_[i]; });
}

Result<ControlTokens> ControlTokens::create(TokenId first_id, std::vector<std::string> spellings,
                                            const std::string& path) {
  for (size_t i = 0; i < spellings.size(); ++i)
    if (spellings[i].size() > limits::kControlTokenBytes)
      return fail(
          ErrorCode::BadModel,
          fmt::format("{}: the control token {} is spelled with {} bytes, expected at most {}",
                      path, static_cast<size_t>(first_id) + i, spellings[i].size(),
                      limits::kControlTokenBytes));
  ControlTokens tokens(first_id, std::move(spellings));
  TRY_STATUS(tokens.check_distinct(path));
  return tokens;
}

ControlTokens ControlTokens::of_k3(TokenId first_id) {
  return {first_id, kimi_spellings(first_id, k3_names())};
}

Result<ControlTokens> ControlTokens::from_config(std::string_view json, const std::string& path,
                                                 TokenId first_id) {
  TRY(Names names, read_names(json, path, first_id));
  return create(first_id, kimi_spellings(first_id, std::move(names)), path);
}

Status ControlTokens::check_distinct(const std::string& path) const {
  for (size_t i = 1; i < sorted_.size(); ++i) {
    const auto [low, high] = std::minmax(sorted_[i - 1], sorted_[i]);
    if (spellings_[low] == spellings_[high])
      return fail(ErrorCode::BadModel,
                  fmt::format("{}: the control tokens {} and {} are both spelled \"{}\"", path,
                              static_cast<size_t>(first_id_) + low,
                              static_cast<size_t>(first_id_) + high, spellings_[low]));
  }
  return {};
}

std::string_view ControlTokens::spelling(TokenId id) const {
  CHECK(contains(id));
  return spellings_[static_cast<size_t>(id - first_id_)];
}

std::optional<TokenId> ControlTokens::id_of(std::string_view spelling) const {
  const std::optional<Match> match = longest_at(spelling, 0);
  if (!match || match->size != spelling.size()) return std::nullopt;
  return match->id;
}

std::optional<ControlTokens::Match> ControlTokens::find(std::string_view text, size_t from) const {
  for (size_t at = text.find_first_of(first_bytes_, from); at != std::string_view::npos;
       at = text.find_first_of(first_bytes_, at + 1)) {
    if (const std::optional<Match> match = longest_at(text, at)) return match;
  }
  return std::nullopt;
}

std::optional<ControlTokens::Match> ControlTokens::longest_at(std::string_view text,
                                                              size_t at) const {
  // [low, high) are the spellings that start with the first `size` bytes of the text. Byte by byte
  // they become fewer; the shortest sorts first, so one that has been read to its end is the first.
  std::optional<Match> longest;
  auto low = sorted_.begin();
  auto high = sorted_.end();
  for (size_t size = 0; low != high; ++size) {
    if (spellings_[*low].size() == size) {
      longest = Match{at, size, first_id_ + static_cast<TokenId>(*low)};
      ++low;
    }
    if (at + size == text.size()) break;
    const uint8_t wanted = static_cast<uint8_t>(text[at + size]);
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(spellings_[i][size]); };
    const auto same = std::ranges::equal_range(low, high, wanted, {}, byte);
    low = same.begin();
    high = same.end();
  }
  return longest;
}

}  // namespace deltafin::text
