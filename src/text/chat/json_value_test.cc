#include "text/chat/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"

namespace deltafin::text {
namespace {

using testing::HasSubstr;

std::string spaced(std::string_view text, JsonDialect dialect = JsonDialect::Strict) {
  const Result<JsonValue> value = parse_json(text, dialect);
  return value ? dump_json(*value, JsonSpacing::Spaced, JsonKeys::AsGiven)
               : "error: " + value.error().what;
}

TEST(JsonValue, NumbersAreSpelledAsPythonDoes) {
  EXPECT_EQ(spaced("[1, -0, 12345678901234567890123, 1.0, -0.0, 1E5, 1.50]"),
            "[1, 0, 12345678901234567890123, 1.0, -0.0, 100000.0, 1.5]");
  EXPECT_EQ(
      spaced("[1e15, 1e16, 123456789.123456789, 0.0001, 1e-5, 5e-324, 1.7976931348623157e308]"),
      "[1000000000000000.0, 1e+16, 123456789.12345679, 0.0001, 1e-05, 5e-324, "
      "1.7976931348623157e+308]");
  EXPECT_EQ(spaced("[1e-400, -1e-400, 1.25e22, 1e100, 0.1e-6]"),
            "[0.0, -0.0, 1.25e+22, 1e+100, 1e-07]");
}

TEST(JsonValue, OnlyPythonsDialectHasNumbersThatAreNone) {
  EXPECT_EQ(spaced("[NaN, Infinity, -Infinity, 1e400, -1e400]", JsonDialect::Python),
            "[NaN, Infinity, -Infinity, Infinity, -Infinity]");
  for (const char* text : {"NaN", "Infinity", "-Infinity", "1e400"}) {
    EXPECT_THAT(spaced(text), HasSubstr("error: not valid JSON: what is at byte 0")) << text;
  }
}

TEST(JsonValue, MembersKeepTheirOrderAndARepeatedKeyItsFirstPlaceAndLastValue) {
  EXPECT_EQ(spaced(R"({"b":1,"a":{"z":[],"y":{}},"b":2,"10":3})"),
            R"({"b": 2, "a": {"z": [], "y": {}}, "10": 3})");
}

TEST(JsonValue, SortedKeysAreInOrderOfCodePointsAtEveryDepth) {
  const JsonValue value =
      parse_json(R"({"é":0,"b":0,"B":[{"9":0,"10":0}],"𝄞":0,"":0})", JsonDialect::Strict).value();
  EXPECT_EQ(dump_json(value, JsonSpacing::Compact, JsonKeys::Sorted),
            R"({"":0,"B":[{"10":0,"9":0}],"b":0,"é":0,"𝄞":0})");
}

TEST(JsonValue, OnlyWhatJsonMustEscapeIsEscaped) {
  EXPECT_EQ(spaced(R"("\"\\\/\b\f\n\r\t\u0001\u001f\u007f\u2028é\u00e9\ud834\udd1e</script>")"),
            "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\u2028éé𝄞</script>\"");
}

TEST(JsonValue, ScalarsAsPythonsStr) {
  const JsonValue value =
      parse_json(R"([true, false, null, NaN, Infinity, -Infinity, 1e16, "s", {"a": [1]}])",
                 JsonDialect::Python)
          .value();
  std::string all;
  for (const JsonValue& element : *value.as_array()) all += python_str(element) + ";";
  EXPECT_EQ(all, "True;False;None;nan;inf;-inf;1e+16;s;{\"a\": [1]};");
}

TEST(JsonValue, WhatIsNoJsonIsRefusedWithItsPlace) {
  for (const auto& [text, what] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", "ends too early"},
           {"{\"a\": 1", "ends too early"},
           {"\"ab", "ends too early"},
           {"{\"a\" 1}", "byte 5 should be a colon"},
           {"{a: 1}", "byte 1 is not the name of a member"},
           {"[1,]", "byte 3 is no value"},
           {"[1 2]", "byte 3 should be a comma"},
           {"01", "byte 1 stands behind the end"},
           {"-", "byte 0 is no value"},
           {"1.", "ends too early"},
           {"1.x", "byte 2 should be a digit"},
           {"+1", "byte 0 is no value"},
           {"nul", "byte 0 is no value"},
           {"\"\n\"", "byte 1 is a control character"},
           {R"("\x")", "byte 2 is no escape"},
           {R"("\u12G4")", "byte 5 should be a hexadecimal digit"},
           {R"("\ud800")", "lone surrogate"},
           {R"("\udc00")", "lone surrogate"},
           {R"("\ud800\u0041")", "lone surrogate"},
           {"\"\xFF\"", "byte 1 is not UTF-8"},
           {"{}\xFF", "byte 2 is not UTF-8"},
           {"12\xFF", "byte 2 is not UTF-8"},
           {"{x\xFF", "byte 1 is not the name of a member"},
           {"{} {}", "byte 3 stands behind the end"}}) {
    EXPECT_THAT(spaced(text, JsonDialect::Python), HasSubstr(what)) << text;
  }
}

TEST(JsonValue, ErrorsSayInWhichMemberTheyAre) {
  const auto place = [](const std::string& text) {
    std::string where = "untouched";
    EXPECT_FALSE(parse_json(text, JsonDialect::Strict, &where)) << text;
    return where;
  };
  EXPECT_EQ(place("{\"a\": \"\xFF\"}"), "a");
  EXPECT_EQ(place("{\"a\": [1, {\"b\": tru}]}"), "a[1].b");
  EXPECT_EQ(place("[[1], [1, 2, [x"), "[1][2][0]");
  EXPECT_EQ(place("{\"a\": 1, \"\xFF\": 2}"), "");
  EXPECT_EQ(place("{\"a\": 1}\xFF"), "");
  EXPECT_EQ(place("{\"" + std::string(65, 'x') + "\": [x"), "");
  EXPECT_EQ(place("{\"a\": {\"" + std::string(65, 'x') + "\": {\"b\": x"), "a");
  EXPECT_EQ(place(std::string(1000, '[')).size() % 3, 0u);  // whole parts of it
  EXPECT_LE(place(std::string(1000, '[')).size(), 2u * 64);
  std::string where = "untouched";
  EXPECT_TRUE(parse_json("{}", JsonDialect::Strict, &where));
  EXPECT_EQ(where, "untouched");
}

TEST(JsonValue, DepthIsLimited) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_EQ(spaced(nested(limits::kChatJsonDepth)), nested(limits::kChatJsonDepth));
  EXPECT_THAT(spaced(nested(limits::kChatJsonDepth + 1)), HasSubstr("nested more than 128 levels"));
}

TEST(JsonValue, TheNumberOfValuesIsLimited) {
  const auto list = [](size_t zeros) {
    std::string text = "[0";
    for (size_t i = 1; i < zeros; ++i) text += ",0";
    return text + "]";
  };
  EXPECT_TRUE(parse_json(list(limits::kChatJsonValues - 1), JsonDialect::Strict));
  EXPECT_THAT(spaced(list(limits::kChatJsonValues)), HasSubstr("more than 1310720 values"));
}

}  // namespace
}  // namespace deltafin::text
