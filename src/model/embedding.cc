#include "model/embedding.h"

#include <algorithm>
#include <cmath>

namespace deltafin::model {

OwnedRows embed_tokens(Context& context, const numerics::WeightMatrix& table,
                       std::span<const TokenId> tokens) {
  OwnedRows embedded(tokens.size(), table.cols);
  const Rows rows = embedded.view();
  context.team.parallel_for(tokens.size(), [&](size_t i) {
    const std::byte* source = table.data + size_t(tokens[i]) * table.row_bytes();
    numerics::widen(table.format, source, rows.row(i), rows.width);
  });
  return embedded;
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
