#include "text/kimi_pattern.h"

#include "text/split_pattern.h"

namespace deltafin::text {

std::string kimi_split_pattern() {
  // Parts of character classes; to be put between brackets.
  const std::string space(kWhiteSpace);
  const std::string new_han = R"(\x{2EBF0}-\x{2EE5D}\x{31350}-\x{323AF})";
  const std::string han = R"(\p{sc:Han})" + new_han;
  const std::string letter_or_number = R"(\p{L}\p{N})" + new_han;

  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]] and [\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]. Each
  // code point has one general category, so an intersection is the complement of all other
  // categories and Han. Unlike a look-ahead at each character, a plain class needs no stack to
  // repeat.
  const std::string upper = R"([^\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C})" + han + "]";
  const std::string lower = R"([^\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C})" + han + "]";

  const std::string before_word = R"([^\r\n)" + letter_or_number + "]?";
  const std::string contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";

  return "[" + han + "]+"                                               //
         + "|" + before_word + upper + "*" + lower + "+" + contraction  //
         + "|" + before_word + upper + "+" + lower + "*" + contraction  //
         + R"(|\p{N}{1,3})"                                             //
         + "| ?[^" + space + letter_or_number + R"(]+[\r\n]*)"          //
         + "|[" + space + R"(]*[\r\n]+)"                                //
         + "|[" + space + "]+(?![^" + space + "])"                      //
         + "|[" + space + "]+";
}

}  // namespace deltafin::text
