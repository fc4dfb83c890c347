#include <fmt/format.h>

#include "base/limits.h"
#include "text/chat/json_value.h"
#include "text/chat/python_number.h"
#include "text/utf8.h"

namespace deltafin::text {

namespace {

// Of the name of a member, where an error says its place.
constexpr size_t kShownBytes = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  Parser(std::string_view text, JsonDialect dialect) : text_(text), dialect_(dialect) {}

  Result<JsonValue> parse() {
    // What comes before is read all the same: it says in which member the error is.
    if (const std::optional<size_t> bad = find_ill_formed(text_)) {
      is_cut_ = true;
      text_ = text_.substr(0, *bad);
    }
    skip_space();
    TRY(JsonValue value, parse_value(0));
    skip_space();
    if (at_ < text_.size() || is_cut_) return wrong("stands behind the end");
    return value;
  }

  // Of the error.
  std::string take_place() { return std::move(place_); }

 private:
  std::unexpected<Error> wrong(std::string_view what) const {
    if (at_ >= text_.size() && !is_cut_)
      return fail(ErrorCode::Usage, "not valid JSON: it ends too early");
    if (at_ >= text_.size()) what = "is not UTF-8";
    return fail(ErrorCode::Usage, fmt::format("not valid JSON: what is at byte {} {}", at_, what));
  }

  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_space() {
    while (next_is(' ') || next_is('\n') || next_is('\r') || next_is('\t')) ++at_;
  }

  Result<JsonValue> parse_value(int depth) {
    if (++count_ > limits::kChatJsonValues) {
      return fail(ErrorCode::Usage,
                  fmt::format("JSON of more than {} values", limits::kChatJsonValues));
    }
    if (next_is('{') || next_is('[')) {
      if (depth == limits::kChatJsonDepth) {
        return fail(ErrorCode::Usage,
                    fmt::format("JSON nested more than {} levels deep", limits::kChatJsonDepth));
      }
      return next_is('{') ? parse_object(depth + 1) : parse_array(depth + 1);
    }
    if (next_is('"')) {
      TRY(std::string string, parse_string());
      return JsonValue{std::move(string)};
    }
    if (take("null")) return JsonValue{nullptr};
    if (take("true")) return JsonValue{true};
    if (take("false")) return JsonValue{false};
    if (dialect_ == JsonDialect::Python) {
      for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
        if (take(word)) return JsonValue{JsonValue::Number{std::string(word), false}};
      }
    }
    return parse_number();
  }

  Result<JsonValue> parse_object(int depth) {
    ++at_;
    ObjectBuilder members;
    skip_space();
    if (take('}')) return JsonValue{JsonValue::Object{}};
    do {
      skip_space();
      if (!next_is('"')) return wrong("is not the name of a member");
      TRY(std::string key, parse_string());
      skip_space();
      if (!take(':')) return wrong("should be a colon");
      skip_space();
      Result<JsonValue> value = parse_value(depth);
      if (!value) {
        note_place(key);
        return value;
      }
      members.set(std::move(key), *std::move(value));
      skip_space();
    } while (take(','));
    if (!take('}')) return wrong("should be a comma or the end of an object");
    return members.take();
  }

  Result<JsonValue> parse_array(int depth) {
    ++at_;
    JsonValue::Array array;
    skip_space();
    if (take(']')) return JsonValue{std::move(array)};
    do {
      skip_space();
      Result<JsonValue> value = parse_value(depth);
      if (!value) {
        note_place(fmt::format("[{}]", array.size()));
        return value;
      }
      array.push_back(*std::move(value));
      skip_space();
    } while (take(','));
    if (!take(']')) return wrong("should be a comma or the end of an array");
    return JsonValue{std::move(array)};
  }

  Result<JsonValue> parse_number() {
    const size_t begin = at_;
    take('-');
    if (!take('0') && !take_digits()) {
      at_ = begin;
      return wrong("is no value");
    }
    bool is_integer = true;
    if (take('.')) {
      is_integer = false;
      if (!take_digits()) return wrong("should be a digit");
    }
    if (take('e') || take('E')) {
      is_integer = false;
      if (!take('+')) take('-');
      if (!take_digits()) return wrong("should be a digit");
    }
    const std::string number(text_.substr(begin, at_ - begin));
    std::string text = is_integer ? python_integer(number) : python_float(number);
    if (dialect_ == JsonDialect::Strict && text.ends_with("Infinity")) {
      at_ = begin;
      return wrong("is a number too large for a double");
    }
    return JsonValue{JsonValue::Number{std::move(text), is_integer}};
  }

  bool take_digits() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ > begin;
  }

  Result<std::string> parse_string() {
    ++at_;
    std::string string;
    for (;;) {
      if (at_ == text_.size()) return wrong("");
      if (take('"')) return string;
      if (take('\\')) {
        TRY_STATUS(parse_escape(string));
      } else if (static_cast<unsigned char>(text_[at_]) < 0x20) {
        return wrong("is a control character within a string");
      } else {
        string += text_[at_++];
      }
    }
  }

  Status parse_escape(std::string& string) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (at_ < text_.size()) {
      if (const size_t found = kLetters.find(text_[at_]); found != std::string_view::npos) {
        string += kMeanings[found];
        ++at_;
        return {};
      }
    }
    const size_t begin = at_;
    TRY(char32_t c, parse_hex());
    if (c >= 0xD800 && c < 0xDC00 && take('\\')) {
      TRY(const char32_t low, parse_hex());
      if (low >= 0xDC00 && low < 0xE000) c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    if (c >= 0xD800 && c < 0xE000) {
      at_ = begin;
      return wrong("is a lone surrogate, which UTF-8 cannot hold");
    }
    append_utf8(c, string);
    return {};
  }

  // u and four hexadecimal digits.
  Result<char32_t> parse_hex() {
    if (!take('u')) return wrong("is no escape");
    char32_t c = 0;
    for (int i = 0; i < 4; ++i) {
      constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
      if (at_ == text_.size()) return wrong("");
      const size_t digit = kDigits.find(text_[at_]);
      if (digit == std::string_view::npos) return wrong("should be a hexadecimal digit");
      c = c << 4 | static_cast<char32_t>(digit < 16 ? digit : digit - 6);
      ++at_;
    }
    return c;
  }

  // Called by each object and array around an error, the innermost first. What is far inside is
  // left out.
  void note_place(const std::string& part) {
    if (part.size() > kShownBytes || place_.size() > kShownBytes) place_.clear();
    if (part.size() > kShownBytes) return;
    place_ = part + (place_.empty() || place_.front() == '[' ? "" : ".") + place_;
  }

  std::string_view text_;
  JsonDialect dialect_;
  size_t at_ = 0, count_ = 0;
  bool is_cut_ = false;  // in front of what is not UTF-8
  std::string place_;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text, JsonDialect dialect, std::string* place) {
  Parser parser(text, dialect);
  Result<JsonValue> value = parser.parse();
  if (!value && place != nullptr) *place = parser.take_place();
  return value;
}

}  // namespace deltafin::text
