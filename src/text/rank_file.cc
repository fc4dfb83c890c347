#include "text/rank_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/limits.h"

namespace deltafin::text {

namespace {

constexpr uint8_t kNotBase64 = 64;

constexpr std::array<uint8_t, 256> make_base64_values() {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<uint8_t, 256> values{};
  values.fill(kNotBase64);
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  return values;
}

constexpr std::array<uint8_t, 256> kBase64Values = make_base64_values();

// False unless `text` is the one padded base64 form of some bytes, which then are in `bytes`. Bits
// that belong to no byte must be 0: otherwise two lines could spell the same token differently.
bool decode_base64(std::string_view text, std::string& bytes) {
  bytes.clear();
  if (text.size() % 4 != 0) return false;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  uint32_t bits = 0;
  uint32_t bit_count = 0;
  for (const char c : text.substr(0, text.size() - padding)) {
    const uint8_t value = kBase64Values[static_cast<uint8_t>(c)];
    if (value == kNotBase64) return false;
    bits = bits << 6 | value;
    bit_count += 6;
    if (bit_count < 8) continue;
    bit_count -= 8;
    bytes.push_back(static_cast<char>(bits >> bit_count));
    bits &= (1u << bit_count) - 1;
  }
  return bits == 0;
}

// Long or binary text must not flood a message.
std::string quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string shown;
  for (const char c : text.substr(0, kShown)) shown += c >= ' ' && c <= '~' ? c : '?';
  return fmt::format("\"{}{}\"", shown, text.size() > kShown ? "..." : "");
}

// Reads `line`, which must hold the token of `rank`, into `token`. The error says what is wrong
// with the line; the caller says which line it is.
Status parse_line(std::string_view line, size_t rank, std::string& token) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos)
    return fail(ErrorCode::BadModel,
                fmt::format("expected \"<base64> {}\", found {}", rank, quoted(line)));
  const std::string_view base64 = line.substr(0, space);
  const std::string_view number = line.substr(space + 1);
  if (base64.empty()) return fail(ErrorCode::BadModel, "the token is empty");
  if (!decode_base64(base64, token))
    return fail(ErrorCode::BadModel, fmt::format("{} is not padded base64", quoted(base64)));
  if (number != fmt::format_int(rank).c_str())
    return fail(ErrorCode::BadModel,
                fmt::format("the rank must be {}, one more than on the line before, but it is {}",
                            rank, quoted(number)));
  return {};
}

}  // namespace

Result<RankTable> parse_rank_file(std::string_view text, const std::string& path) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return fail(ErrorCode::BadModel, path + ": the rank file is empty");
  const size_t line_count = 1 + static_cast<size_t>(std::ranges::count(text, '\n'));
  if (line_count > limits::kVocabulary)
    return fail(ErrorCode::BadModel,
                fmt::format("{}: {} lines, but a vocabulary may have at most {}", path, line_count,
                            limits::kVocabulary));

  RankTable table(line_count, text.size());
  std::string token;
  for (size_t rank = 0; rank < line_count; ++rank) {
    const size_t end = std::min(text.find('\n'), text.size());
    Status parsed = parse_line(text.substr(0, end), rank, token);
    if (!parsed)
      return std::unexpected(
          std::move(parsed).error().within(fmt::format("{}: line {}", path, rank + 1)));
    if (const std::optional<Rank> earlier = table.add(token))
      return fail(ErrorCode::BadModel, fmt::format("{}: line {}: the token was on line {} already",
                                                   path, rank + 1, *earlier + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Status complete = check_single_bytes(table);
  if (!complete) return std::unexpected(std::move(complete).error().within(path));
  return table;
}

}  // namespace deltafin::text
