// The rank file ("tiktoken" format), in which Kimi publishes its vocabulary.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "text/rank_table.h"

namespace deltafin::text {

// One line a token: its bytes in base64 (padded, RFC 4648), one space, its rank in decimal. Ranks
// are the line numbers from 0; a final newline may be missing. Every single byte must be a token,
// so that any text can be encoded. `path` is for messages only.
//
// Errors: BadModel, naming path and line (from 1): bad base64, an empty or repeated token, a rank
// that is not the line's, anything else on a line; or naming the bytes that are no token; or when
// there are more tokens than limits::kVocabulary allows.
Result<RankTable> parse_rank_file(std::string_view text, const std::string& path);

}  // namespace deltafin::text
