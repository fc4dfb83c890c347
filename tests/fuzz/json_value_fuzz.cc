// A text is JSON for us if it is for nlohmann's parser (but for lone surrogates, numbers beyond
// double and depth), and what we write of it reads back the same.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/chat/json_value.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deltafin::text;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto strict = parse_json(text, JsonDialect::Strict);
  // Its parser passes over a byte order mark, which is not JSON.
  if (!text.starts_with("\xEF\xBB\xBF") && strict) CHECK(nlohmann::json::accept(text));
  const auto value = parse_json(text, JsonDialect::Python);
  if (strict) CHECK(value.has_value() && *value == *strict);
  if (!value) return 0;
  for (const JsonSpacing spacing : {JsonSpacing::Compact, JsonSpacing::Spaced}) {
    const std::string written = dump_json(*value, spacing, JsonKeys::AsGiven);
    const auto again = parse_json(written, JsonDialect::Python);
    CHECK(again.has_value() && *again == *value);
  }
  const std::string sorted = dump_json(*value, JsonSpacing::Compact, JsonKeys::Sorted);
  const auto again = parse_json(sorted, JsonDialect::Python);
  CHECK(again.has_value());
  CHECK(dump_json(*again, JsonSpacing::Compact, JsonKeys::AsGiven) == sorted);
  return 0;
}
