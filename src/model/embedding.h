// The two ends of every model: token ids to rows, and rows to logits.
#pragma once

#include <span>

#include "model/linear.h"

namespace deltafin::model {

// The trunk's embedding of `tokens`, [tokens, hidden_size]. Errors: Io; Cancelled.
Result<Activations> embed_tokens(Context& context, std::span<const TokenId> tokens,
                                 size_t hidden_size);

// logits[i] = head normed[i]; logits.width == head.rows. Errors: BadModel for a logit that is not
// finite; Cancelled.
Status project_logits(Context& context, const numerics::WeightMatrix& head, Rows normed,
                      Rows logits);

}  // namespace deltafin::model
