// Any bytes are a tokenizer or an error; a tokenizer gives a text back in its normal form.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "text/byte_level_tokenizer.h"
#include "text/nfc.h"

namespace {

// In both modes, and each token exists.
void check_round_trip(const deltafin::text::Tokenizer& tokenizer, const std::string& text) {
  using deltafin::text::SpecialTokens;
  for (const SpecialTokens mode : {SpecialTokens::AsText, SpecialTokens::Parse}) {
    const auto ids = tokenizer.encode(text, mode);
    if (!ids) continue;  // not UTF-8
    const auto decoded = tokenizer.decode(*ids);
    CHECK(decoded.has_value());
    std::string storage;
    // With control tokens among them, only what lies between is normalised.
    if (mode == SpecialTokens::AsText)
      CHECK(*decoded == text || *decoded == deltafin::text::to_nfc(text, storage));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = deltafin::text::make_byte_level_tokenizer(bytes, "fuzz");
  if (!tokenizer) return 0;
  check_round_trip(**tokenizer, bytes);
  check_round_trip(**tokenizer, bytes.substr(size / 2));
  return 0;
}
