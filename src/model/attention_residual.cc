#include "model/attention_residual.h"

namespace deltafin::model {

std::vector<float> attention_residual_weight(std::span<const float> norm,
                                             std::span<const float> proj) {
  CHECK(norm.size() == proj.size());
  std::vector<float> weight(norm.size());
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = norm[i] * proj[i];
  return weight;
}

void attention_residual(Context& context, std::span<const OwnedRows> blocks, Rows running,
                        std::span<const float> score_weight, float epsilon, Rows out) {
  context.team.parallel_for(running.count, [&](size_t row) {
    attention_residual_row(context, blocks, running, score_weight, epsilon, row, out.row(row));
  });
}

void attention_residual_row(const Context& context, std::span<const OwnedRows> blocks, Rows running,
                            std::span<const float> score_weight, float epsilon, size_t row,
                            float* out) {
  CHECK(score_weight.size() == running.width);
  std::vector<const float*> entries;
  entries.reserve(blocks.size() + 1);
  for (const OwnedRows& block : blocks) entries.push_back(block.view().row(row));
  entries.push_back(running.row(row));
  std::vector<float> probabilities(entries.size());
  context.kernels.attention_residual(entries.data(), entries.size(), score_weight.data(), epsilon,
                                     probabilities.data(), out, running.width);
}

}  // namespace deltafin::model
