#include "checkpoint/config_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"

namespace deltafin::checkpoint {
namespace {

using nlohmann::json;

constexpr size_t kShownBytes = 100;

std::string shown(const json* value) {
  if (value == nullptr) return "nothing";
  // Invalid UTF-8 cannot get through the parser; "replace" only keeps dump() from throwing.
  std::string text = value->dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes) + "...";
  return text;
}

std::string describe(IntegerRange range) {
  return fmt::format("an integer from {} to {}", range.least, range.most);
}

bool is_integer_in(const json& value, IntegerRange range) {
  if (!value.is_number_unsigned()) return false;
  const uint64_t number = value.get<uint64_t>();
  return number >= range.least && number <= range.most;
}

}  // namespace

const json* Fields::find(const char* name) {
  read_.insert(name);
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::unexpected<Error> Fields::refuse(const char* name, const json* found,
                                      const std::string& expected) const {
  return fail(ErrorCode::BadModel,
              fmt::format("{}: found {}, expected {}", full_name(name), shown(found), expected));
}

std::unexpected<Error> Fields::refuse(const char* name, const std::string& expected) const {
  const auto found = object_->find(name);
  return refuse(name, found == object_->end() ? nullptr : &*found, expected);
}

Result<std::optional<uint64_t>> Fields::optional_integer(const char* name, IntegerRange range) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!is_integer_in(*value, range)) return refuse(name, describe(range));
  return value->get<uint64_t>();
}

Result<uint64_t> Fields::integer(const char* name, IntegerRange range) {
  TRY(const std::optional<uint64_t> value, optional_integer(name, range));
  if (!value) return refuse(name, describe(range));
  return *value;
}

Result<std::optional<double>> Fields::optional_number(const char* name, RealRange range) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= range.least && number <= range.most)) {
    return refuse(name, fmt::format("a number from {} to {}", range.least, range.most));
  }
  return number;
}

Result<std::optional<float>> Fields::optional_real(const char* name, RealRange range) {
  TRY(const std::optional<double> number, optional_number(name, range));
  if (!number) return std::nullopt;
  return static_cast<float>(*number);
}

Result<float> Fields::real(const char* name, RealRange range) {
  TRY(const std::optional<float> value, optional_real(name, range));
  if (!value) return refuse(name, fmt::format("a number from {} to {}", range.least, range.most));
  return *value;
}

Result<std::optional<bool>> Fields::optional_flag(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return refuse(name, "true or false");
  return value->get<bool>();
}

Result<std::string> Fields::word(const char* name) {
  const json* value = find(name);
  if (value == nullptr || !value->is_string()) return refuse(name, "a string");
  return value->get<std::string>();
}

Result<std::vector<uint64_t>> Fields::integers(const char* name, IntegerRange range, size_t most) {
  const json* value = find(name);
  const std::string expected =
      fmt::format("a list of at most {} integers from {} to {}", most, range.least, range.most);
  if (value == nullptr || !value->is_array() || value->size() > most) return refuse(name, expected);
  std::vector<uint64_t> numbers;
  for (const json& item : *value) {
    if (!is_integer_in(item, range)) return refuse(name, &item, expected);
    numbers.push_back(item.get<uint64_t>());
  }
  return numbers;
}

Result<std::optional<Fields>> Fields::optional_object(const char* name) {
  const json* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) return refuse(name, "an object");
  return Fields(*value, full_name(name) + ".");
}

Result<Fields> Fields::object(const char* name) {
  TRY(std::optional<Fields> fields, optional_object(name));
  if (!fields) return refuse(name, "an object");
  return std::move(*fields);
}

Status Fields::must_equal(const FixedField& field) {
  const json* value = find(field.name);
  const json expected = json::parse(field.value, nullptr, /*allow_exceptions=*/false);
  CHECK(!expected.is_discarded());  // the tables hold JSON
  const bool equal = value == nullptr ? field.presence == Presence::Optional || expected.is_null()
                                      : *value == expected;
  if (equal) return {};
  return refuse(field.name, fmt::format("{} ({})", field.value, field.reason));
}

Status Fields::must_equal(std::span<const FixedField> table) {
  for (const FixedField& field : table) TRY_STATUS(must_equal(field));
  return {};
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_->items()) {
    if (read_.contains(name)) continue;
    // Quoting makes control characters visible; the quotes themselves are not wanted here.
    const json key = name;
    const std::string quoted = shown(&key);
    names.push_back(place_ + quoted.substr(1, quoted.size() - 2));
  }
  return names;
}

}  // namespace deltafin::checkpoint
