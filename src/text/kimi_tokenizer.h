// The tokenizer of Kimi K2, K2.5, Linear and K3: ranks 0..N-1, then 256 control tokens.
#pragma once

#include <memory>

#include "base/result.h"
#include "text/control_tokens.h"
#include "text/rank_table.h"
#include "text/tokenizer.h"

namespace deltafin::text {

// A rank is the token's id. Nothing is normalised, so the bytes of the tokens put together are the
// text. `ranks` must hold every single byte, and the control tokens must start at ranks.size().
// Errors: Usage, when the PCRE2 at hand is too old for the split pattern (before 10.40).
Result<std::unique_ptr<Tokenizer>> make_kimi_tokenizer(RankTable ranks,
                                                       ControlTokens control_tokens);

}  // namespace deltafin::text
