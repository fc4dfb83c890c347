// The two ends of every model: token ids to rows, and rows to logits.
#pragma once

#include <span>

#include "model/linear.h"

namespace deltafin::model {

// The table's rows of `tokens`, widened. Ids are in [0, table.rows).
OwnedRows embed_tokens(Context& context, const numerics::WeightMatrix& table,
                       std::span<const TokenId> tokens);

// logits[i] = head normed[i]; logits.width == head.rows. Errors: BadModel for a logit that is not
// finite; Cancelled.
Status project_logits(Context& context, const numerics::WeightMatrix& head, Rows normed,
                      Rows logits);

}  // namespace deltafin::model
