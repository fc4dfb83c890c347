#include "text/chat/qwen_calls.h"

#include <fmt/format.h>

#include "text/chat/json_value.h"
#include "text/chat/python_text.h"

namespace deltafin::text {

namespace {

constexpr std::string_view kFunction = "<function=", kFunctionEnd = "</function>";
constexpr std::string_view kParameter = "<parameter=", kParameterEnd = "</parameter>";

ParsedCall bad_call(std::string name, std::string what, std::string_view body) {
  return {"", std::move(name), std::unexpected(BadArguments{std::move(what), std::string(body)})};
}

// The place of the first '<' at or after `from` where `is_it(rest of the text, whether a line
// begins there)`; the size of the text when there is none.
template <class Predicate>
size_t find_tag(std::string_view text, size_t from, Predicate is_it) {
  for (size_t at = text.find('<', from); at != std::string_view::npos;
       at = text.find('<', at + 1)) {
    if (is_it(text.substr(at), at == 0 || text[at - 1] == '\n')) return at;
  }
  return text.size();
}

std::string_view without_outer_newlines(std::string_view value) {
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  return value;
}

class ElementParser {
 public:
  ElementParser(std::string_view body, const ToolSchemas& schemas)
      : body_(body), schemas_(schemas) {}

  ParsedCall parse() {
    at_ = body_.find(kFunction);
    if (at_ == std::string_view::npos)
      return bad_call("", "the call has no <function=NAME>", body_);
    at_ += kFunction.size();
    const std::string name(strip(take_to('>')));
    if (name.empty()) return bad_call("", "the call has no <function=NAME>", body_);
    ObjectBuilder arguments;
    for (;;) {
      at_ = find_tag(body_, at_, [](std::string_view rest, bool) {
        return rest.starts_with(kParameter) || rest.starts_with(kFunctionEnd);
      });
      if (!body_.substr(at_).starts_with(kParameter)) break;
      at_ += kParameter.size();
      const std::string key(strip(take_to('>')));
      const std::string_view value = take_value();
      if (at_ == body_.size()) {
        return bad_call(name, fmt::format("parameter \"{}\" is not closed", key), body_);
      }
      arguments.set(key, schemas_.typed(name, key, without_outer_newlines(value)));
    }
    return {"", name, dump_json(arguments.take(), JsonSpacing::Spaced, JsonKeys::AsGiven)};
  }

 private:
  std::string_view take_to(char end) {
    const size_t found = std::min(body_.find(end, at_), body_.size());
    const std::string_view taken = body_.substr(at_, found - at_);
    at_ = std::min(found + 1, body_.size());
    return taken;
  }

  std::string_view take_value() {
    const size_t begin = at_;
    at_ = find_tag(body_, at_, [](std::string_view rest, bool begins_line) {
      const bool next = rest.starts_with(kParameter) || rest.starts_with(kFunctionEnd);
      return rest.starts_with(kParameterEnd) || (begins_line && next);
    });
    return body_.substr(begin, at_ - begin);
  }

  std::string_view body_;
  const ToolSchemas& schemas_;
  size_t at_ = 0;
};

}  // namespace

ParsedCall parse_json_call(std::string_view body) {
  const Result<JsonValue> parsed = parse_json(body, JsonDialect::Strict);
  if (!parsed) return bad_call("", parsed.error().what, body);
  const JsonValue* name = parsed->find("name");
  if (name == nullptr || name->as_string() == nullptr) {
    return bad_call("", "the call has no name", body);
  }
  const JsonValue* found = parsed->find("arguments");
  JsonValue arguments = found != nullptr ? *found : JsonValue{JsonValue::Object{}};
  if (const std::string* string = arguments.as_string()) {
    if (Result<JsonValue> inner = parse_json(*string, JsonDialect::Strict)) {
      JsonValue value = *std::move(inner);
      arguments = std::move(value);
    }
  }
  if (arguments.as_object() == nullptr) {
    return bad_call(*name->as_string(),
                    fmt::format("the arguments are {}, not an object", kind_of(arguments)), body);
  }
  return {"", *name->as_string(), dump_json(arguments, JsonSpacing::Spaced, JsonKeys::AsGiven)};
}

ParsedCall parse_element_call(std::string_view body, const ToolSchemas& schemas) {
  if (strip(body).starts_with('{')) return parse_json_call(body);
  return ElementParser(body, schemas).parse();
}

bool is_complete_element_call(std::string_view body) {
  return find_tag(body, 0, [](std::string_view rest, bool begins_line) {
           return begins_line && rest.starts_with(kFunctionEnd);
         }) < body.size();
}

}  // namespace deltafin::text
