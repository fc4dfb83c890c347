#include "cli/flag_values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/limits.h"

namespace deltafin::cli {

namespace {

constexpr size_t kShownBytes = 60;

// `text` in quotes, cut to what fits into a line.
std::string quoted(std::string_view text) {
  if (text.size() <= kShownBytes) return fmt::format("\"{}\"", text);
  return fmt::format("\"{}...\"", text.substr(0, kShownBytes));
}

std::unexpected<Error> refuse(std::string_view found, const std::string& expected) {
  return fail(ErrorCode::Usage, fmt::format("found {}, expected {}", quoted(found), expected));
}

// The number that `text` is as a whole.
template <class Number>
std::optional<Number> whole_number(std::string_view text) {
  Number number{};
  const std::from_chars_result result =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

// Bytes of one unit; `unit` is in lower case.
std::optional<double> unit_bytes(std::string_view unit) {
  constexpr std::string_view kPrefixes = "kmgtp";
  if (unit.empty() || unit == "b") return 1;
  const size_t prefix = kPrefixes.find(unit[0]);
  if (prefix == std::string_view::npos) return std::nullopt;
  const double power = static_cast<double>(prefix + 1);
  if (unit.substr(1) == "b") return std::pow(1000.0, power);
  if (unit.substr(1) == "ib") return std::pow(1024.0, power);
  return std::nullopt;
}

template <class Value>
Setter parsed_into(std::optional<Value>& into,
                   std::function<Result<Value>(std::string_view)> parse) {
  return [&into, parse = std::move(parse)](std::string_view text) -> Status {
    TRY(into, parse(text));
    return {};
  };
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

Result<uint64_t> parse_integer(std::string_view text, uint64_t least, uint64_t most) {
  const std::optional<uint64_t> number = whole_number<uint64_t>(text);
  if (number && *number >= least && *number <= most) return *number;
  if (most == UINT64_MAX) return refuse(text, fmt::format("an integer of at least {}", least));
  return refuse(text, fmt::format("an integer from {} to {}", least, most));
}

Result<float> parse_real(std::string_view text) {
  const std::optional<float> number = whole_number<float>(text);
  if (!number || !std::isfinite(*number)) return refuse(text, "a number such as 0.7");
  return *number;
}

Result<uint64_t> parse_size(std::string_view text) {
  const char* expected = "a size such as 2GB (2 x 10^9 bytes), 512MiB (512 x 2^20) or 1000000";
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> number = whole_number<double>(text.substr(0, digits));
  const std::optional<double> unit = unit_bytes(lower_case(trimmed(text.substr(digits))));
  if (!number || !unit) return refuse(text, expected);
  const double bytes = *number * *unit;
  // 2^63 is more than any machine has, and still converts exactly.
  if (bytes >= 0x1p63) return refuse(text, "a size below 8 EiB");
  return static_cast<uint64_t>(bytes);
}

Result<memory::BudgetRule> parse_budget(std::string_view text) {
  if (lower_case(text) == "auto") return memory::AutoBudget{};
  if (!text.ends_with('%')) {
    Result<uint64_t> bytes = parse_size(text);
    if (!bytes)
      return refuse(text,
                    "a size such as 24GB (24 x 10^9 bytes) or 512MiB, a share such as 80%, "
                    "or auto");
    return *bytes;
  }
  const std::optional<double> percent =
      whole_number<double>(trimmed(text.substr(0, text.size() - 1)));
  if (!percent || !(*percent > 0 && *percent <= 100))
    return refuse(text, "a share above 0% and up to 100%");
  return memory::ShareOfUsable{*percent / 100};
}

Result<double> parse_rate(std::string_view text) {
  constexpr double kMost = 1e6;  // a thousand times the memory of any machine
  const std::optional<double> number = whole_number<double>(text);
  if (!number || !(*number > 0 && *number <= kMost))
    return refuse(text, "a number above 0, such as 7.2");
  return *number * 1e9;
}

Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  constexpr uint64_t kIdMost = limits::kVocabulary - 1;
  std::vector<TokenId> ids;
  for (std::string_view rest = text;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = trimmed(rest.substr(0, comma));
    const Result<uint64_t> id = parse_integer(word, 0, kIdMost);
    if (!id)
      return fail(ErrorCode::Usage,
                  fmt::format("found {} in place {} of the list, expected token ids such as 1,2,3 "
                              "(each from 0 to {})",
                              quoted(word), ids.size() + 1, kIdMost));
    ids.push_back(static_cast<TokenId>(*id));
    if (comma == rest.size()) return ids;
    rest.remove_prefix(comma + 1);
  }
}

Setter integer_into(std::optional<uint64_t>& into, uint64_t least, uint64_t most) {
  return parsed_into<uint64_t>(
      into, [least, most](std::string_view text) { return parse_integer(text, least, most); });
}

Setter real_into(std::optional<float>& into) { return parsed_into<float>(into, parse_real); }

Setter size_into(std::optional<uint64_t>& into) { return parsed_into<uint64_t>(into, parse_size); }

Setter budget_into(std::optional<memory::BudgetRule>& into) {
  return parsed_into<memory::BudgetRule>(into, parse_budget);
}

Setter rate_into(std::optional<double>& into) { return parsed_into<double>(into, parse_rate); }

Setter ids_into(std::optional<std::vector<TokenId>>& into) {
  return parsed_into<std::vector<TokenId>>(into, parse_ids);
}

Setter text_into(std::optional<std::string>& into) {
  return [&into](std::string_view text) -> Status {
    into = std::string(text);
    return {};
  };
}

}  // namespace deltafin::cli
