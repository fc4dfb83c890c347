#include "text/qwen_pattern.h"

#include "text/split_pattern.h"

namespace deltafin::text {

namespace {

// `letter` is what words are made of; to be put between brackets.
std::string qwen_split_pattern(const std::string& letter) {
  const std::string space(kWhiteSpace);
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[)" + letter + "]+"  //
         + R"(|\p{N}| ?[^)" + space + letter + R"(\p{N}]+[\r\n]*)"              //
         + "|[" + space + R"(]*[\r\n]+)"                                        //
         + "|[" + space + "]+(?![^" + space + "])"                              //
         + "|[" + space + "]+";
}

}  // namespace

std::optional<std::string> published_split_pattern(std::string_view published) {
  if (published == kQwen2Pattern) return qwen_split_pattern(R"(\p{L})");
  if (published == kQwen35Pattern) return qwen_split_pattern(R"(\p{L}\p{M})");
  return std::nullopt;
}

}  // namespace deltafin::text
