// Any bytes are a vocabulary or an error; a vocabulary finds each of its tokens.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "text/rank_file.h"
#include "text/test_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deltafin::text;
  static const std::string single_bytes = rank_file_of(tokens_with({}));
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  // Alone hardly any input gets past its first lines, so each is also tried as their continuation.
  for (const std::string& text : {bytes, single_bytes + bytes}) {
    const deltafin::Result<RankTable> table = parse_rank_file(text, "fuzz");
    if (!table) continue;
    for (Rank rank = 0; rank < table->size(); ++rank)
      CHECK(table->find(table->bytes(rank)) == rank);
  }
  return 0;
}
