// Where Moonshot's tokenizer cuts very long text before it looks at anything else.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace deltafin::text {

// In code points. The published wrapper (tokenization_kimi.py) has these numbers, once chosen to
// spare tiktoken its worst cases; they are part of the tokenizer, for they change what tokens a
// text has.
struct LongTextCuts {
  size_t slice = 400'000;  // a cut after each so many
  size_t run = 25'000;  // and, within a slice, where more than so many in a row are all whitespace
                        // or all not, after each so many of them
};

// The parts of `text`, which must be well-formed UTF-8; none for an empty one. Each part is
// tokenized as if it stood alone. Whitespace is what Python's str.isspace says.
std::vector<std::string_view> cut_long_text(std::string_view text, const LongTextCuts& cuts);

}  // namespace deltafin::text
