// The split pattern of Kimi K2, K2.5, Linear and K3.
#pragma once

#include <string>

namespace deltafin::text {

// In the words of PCRE2, for SplitPattern. It matches at every code point, so nothing lies between
// two matches.
//
// The published pattern (tokenization_kimi.py) is written for Rust's regular expressions, where it
// means what Unicode 16 says; PCRE2 reads the same text differently in three places, and this form
// makes up for them:
//   - && is set intersection there, and two ordinary characters here;
//   - \p{Han} is the script there; here, since PCRE2 10.40, also whatever is used with that script,
//     such as the ideographic full stop;
//   - \s includes U+180E here.
// The ideographs that Unicode 15 and 15.1 added are spelled out, so they are Han with any PCRE2.
// Other characters newer than the Unicode of the PCRE2 at hand (14 in 10.42) are no letters, marks
// or numbers to it. With Kimi's vocabulary that changes the tokens of the 20 Kaktovik numerals, and
// of 72 other characters before an apostrophe; every other code point was compared with tiktoken
// 1.0.22 between letters, spaces, digits, line ends, punctuation and ideographs, and has the same
// tokens.
std::string kimi_split_pattern();

}  // namespace deltafin::text
