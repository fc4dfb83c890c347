#include "model/embedding.h"

#include <algorithm>
#include <cmath>

namespace deltafin::model {

Result<Activations> embed_tokens(Context& context, std::span<const TokenId> tokens,
                                 size_t hidden_size) {
  OwnedRows rows(tokens.size(), hidden_size);
  TRY_STATUS(context.trunk.embedding().read(tokens, {rows.view().data, tokens.size() * hidden_size},
                                            context.cancel));
  return Activations{.residual = std::move(rows), .blocks = {}};
}

Status project_logits(Context& context, const numerics::WeightMatrix& head, Rows normed,
                      Rows logits) {
  PackedRows packed(context, normed);
  linear(context, head, packed, logits);
  TRY_STATUS(context.cancel.check());
  for (size_t i = 0; i < logits.count; ++i) {
    if (std::all_of(logits.row(i), logits.row(i) + logits.width,
                    [](float value) { return std::isfinite(value); }))
      continue;
    return fail(
        ErrorCode::BadModel,
        "lm_head: a logit is not finite; the checkpoint's weights are damaged: verify its files");
  }
  return {};
}

}  // namespace deltafin::model
