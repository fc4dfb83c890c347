// Token bytes to text that can be shown at any moment: never half a code point.
#pragma once

#include <string>
#include <string_view>

namespace deltafin::text {

// Holds back at most 3 bytes (an incomplete but so far valid sequence). Ill-formed bytes become
// U+FFFD, one per maximal ill-formed part (Unicode 15, chapter 3.9, "substitution of maximal
// subparts"), so the concatenated output equals the lossy decoding of the concatenated input
// however the input was cut. What it returns is always well-formed UTF-8. Not thread-safe; one per
// stream.
class StreamDecoder {
 public:
  // Returns what has become complete.
  std::string push(std::string_view bytes);
  // Ends the text: a held-back incomplete sequence becomes U+FFFD. Afterwards the decoder is as
  // new.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace deltafin::text
