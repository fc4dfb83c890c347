// Read once for all files of a build with DELTAFIN_PRECOMPILE (precompiled.cmake says more).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What is used here is instantiated here and not again in every file, a third of the time of files
// with JSON; by clang, for g++ would put the functions off to the end of each.
static_assert(sizeof(nlohmann::json) > 0 && sizeof(nlohmann::ordered_json) > 0);
#ifdef __clang__
template <class Json>
inline Json instantiate_json(Json value, const std::string& text) {
  Json object = {{"text", text},      {"word", "x"},           {"count", uint64_t{1}},
                 {"number", 1},       {"real", 0.5},           {"flag", true},
                 {"size", size_t{1}}, {"list", Json::array()}, {"object", Json::object()}};
  object["list"].push_back(std::move(value));
  object[text] = nullptr;
  object["signed"] = int64_t{1};
  for (const auto& [key, item] : object.items())
    if (item.is_null() && item != object) return item;
  for (const Json& item : object) object["copy"] = item;
  if (object.contains("text") && object.at("text") == text && object.find("x") != object.end())
    object["value"] = object.at("text").template get<std::string>() + object.value("text", "");
  return Json::parse(object.dump() + object.dump(2));
}
inline void instantiate() {
  instantiate_json<nlohmann::json>({}, "");
  instantiate_json<nlohmann::ordered_json>({}, "");
}
#endif
