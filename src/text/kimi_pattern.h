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
// Other characters that are newer than the Unicode of the PCRE2 at hand (14 in 10.42) count as
// neither letter, mark nor number, and may fall into other pieces than the published tokenizer's.
std::string kimi_split_pattern();

}  // namespace deltafin::text
