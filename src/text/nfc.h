// Unicode normal form C: accents and their letters, and Hangul syllables, as one code point each.
#pragma once

#include <string>
#include <string_view>

namespace deltafin::text {

// The normal form NFC of `text`, which must be well-formed UTF-8: `text` itself where that is seen
// to be in it, else a view of `storage`, which is overwritten. Linear in time, but for runs of
// combining marks, which are sorted.
//
// The tables are utf8proc's: Unicode 15 in 2.8. Those of Rust's tokenizers 0.22.2 are older, about
// Unicode 9: 59 marks that are newer (of N'Ko, Gondi, Sogdian and the like) stay there where they
// are, and here are put in order among other marks. Every other code point but the ideographs and
// syllables, of which one in 97, was compared between a letter and a mark.
std::string_view to_nfc(std::string_view text, std::string& storage);

}  // namespace deltafin::text
