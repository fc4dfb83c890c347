// However bytes are cut, the same text comes out, well-formed. The first byte seeds the cuts.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/philox.h"
#include "text/stream_decoder.h"
#include "text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deltafin::text;
  if (size == 0) return 0;
  deltafin::Random random(data[0]);
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  StreamDecoder whole_decoder;
  std::string whole = whole_decoder.push(bytes);
  whole += whole_decoder.finish();
  CHECK(!find_ill_formed(whole));

  StreamDecoder decoder;
  std::string text;
  while (!bytes.empty()) {
    const size_t count = std::min<size_t>(random.below(6), bytes.size());
    text += decoder.push(bytes.substr(0, count));
    CHECK(!find_ill_formed(text));
    bytes.remove_prefix(count);
  }
  text += decoder.finish();
  CHECK(text == whole);
  return 0;
}
