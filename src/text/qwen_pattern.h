// The split patterns of tokenizer.json files: Qwen's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace deltafin::text {

// What Qwen2, 2.5 and 3 publish, and what Qwen3.5 does.
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen35Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// A published pattern in the words of PCRE2, for SplitPattern; nothing for any other. Patterns are
// written for Oniguruma or Rust, and PCRE2 reads some of what these allow differently without a
// word (&& in a class, \s), so only those are taken that were compared.
//
// Here \s differs: in PCRE2 it includes U+180E. Characters newer than the Unicode of the PCRE2 at
// hand (14 in 10.42) are no letters, marks or numbers to it. With Qwen3's vocabulary that changes
// the tokens of the 20 Kaktovik numerals; every other code point but the ideographs, of which one
// in 97, was compared with Rust's tokenizers 0.22.2 between letters, spaces, digits, line ends and
// punctuation, and has the same tokens.
std::optional<std::string> published_split_pattern(std::string_view published);

}  // namespace deltafin::text
