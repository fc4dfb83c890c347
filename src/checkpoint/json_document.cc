#include "checkpoint/json_document.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "base/limits.h"

namespace deltafin::checkpoint {
namespace {

using nlohmann::json;

// Follows the parser, because the library itself neither bounds depth nor minds repeated keys.
class ParseGuard {
 public:
  bool operator()(int depth, json::parse_event_t event, const json& parsed) {
    if (depth > limits::kJsonDepth) {
      too_deep = true;
      return false;  // nothing below is kept
    }
    if (event == json::parse_event_t::object_start) {
      keys_.resize(static_cast<size_t>(depth) + 1);
      keys_.back().clear();
    } else if (event == json::parse_event_t::key && depth >= 1 &&
               static_cast<size_t>(depth) <= keys_.size()) {
      // A key is reported one level below its object.
      std::string name = parsed.get<std::string>();
      if (!keys_[static_cast<size_t>(depth) - 1].insert(name).second && repeated_key.empty()) {
        repeated_key = json(name).dump();
      }
    }
    return true;
  }

  bool too_deep = false;
  std::string repeated_key;  // quoted

 private:
  std::vector<std::set<std::string>> keys_;  // of the object that is open at each depth
};

// Without the library's own prefix "[json.exception.parse_error.101] ".
std::string message_of(const json::exception& error) {
  const std::string text = error.what();
  const size_t end_of_prefix = text.find("] ");
  return end_of_prefix == std::string::npos ? text : text.substr(end_of_prefix + 2);
}

}  // namespace

Result<json> parse_json_object(std::string_view text) {
  if (text.size() > limits::kConfigBytes) {
    return fail(ErrorCode::BadModel, fmt::format("{} bytes long, expected at most {}", text.size(),
                                                 limits::kConfigBytes));
  }
  ParseGuard guard;
  json document;
  try {
    document = json::parse(text, std::ref(guard));
  } catch (const json::exception& error) {
    return fail(ErrorCode::BadModel, fmt::format("not valid JSON: {}", message_of(error)));
  }
  if (guard.too_deep) {
    return fail(ErrorCode::BadModel,
                fmt::format("nested more than {} levels deep", limits::kJsonDepth));
  }
  if (!guard.repeated_key.empty()) {
    return fail(ErrorCode::BadModel, fmt::format("key {} is given twice", guard.repeated_key));
  }
  if (!document.is_object()) return fail(ErrorCode::BadModel, "not a JSON object");
  return document;
}

}  // namespace deltafin::checkpoint
