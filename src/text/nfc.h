// Unicode normal form C: accents and their letters, and Hangul syllables, as one code point each.
#pragma once

#include <string>
#include <string_view>

namespace deltafin::text {

// The normal form NFC of `text`, which must be well-formed UTF-8: `text` itself where that is seen
// to be in it, else a view of `storage`, which is overwritten. Linear in time but for runs of
// combining marks, which are sorted. utf8proc has the tables: characters that are newer than its
// Unicode (15 in 2.8), or than that of the library that a vocabulary was trained with, may be
// composed by one and not by the other. No published version changes those that older ones have.
std::string_view to_nfc(std::string_view text, std::string& storage);

}  // namespace deltafin::text
