// Attention residuals (AttnRes): the residual stream of K3 is a softmax mix over earlier vectors.
#pragma once

#include <span>
#include <vector>

#include "model/model.h"

namespace deltafin::model {

// The score weight of one mix: norm weight times projection, formed in f32 once.
std::vector<float> attention_residual_weight(std::span<const float> norm,
                                             std::span<const float> proj);

// out[i] = sum_j softmax_j(score(v_j)) v_j over v = blocks (oldest first), then the running vector
// last. Scored on the normalised vectors, mixes the raw ones. out may not be running.
void attention_residual(Context& context, std::span<const OwnedRows> blocks, Rows running,
                        std::span<const float> score_weight, float epsilon, Rows out);

// The same for one row of the pass: out [running.width].
void attention_residual_row(const Context& context, std::span<const OwnedRows> blocks, Rows running,
                            std::span<const float> score_weight, float epsilon, size_t row,
                            float* out);

}  // namespace deltafin::model
