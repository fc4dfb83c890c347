#include "memory/expert_image.h"

#include <fmt/format.h>

#include <cstring>

namespace deltafin::memory {

using checkpoint::ExpertContract;
using checkpoint::ExpertFormat;
using checkpoint::ExpertPart;

namespace {

// E8M0 knows one value that is not a number.
constexpr int kScaleNan = 255;

}  // namespace

ExpertWeights weights_in(const checkpoint::Checkpoint& checkpoint, uint32_t layer, uint32_t expert,
                         const ImageLayout& layout, std::span<const std::byte> image) {
  const ExpertContract& contract = *checkpoint.contract().layers[layer].experts;
  const checkpoint::ExpertLocation& location = checkpoint.expert(layer, expert);
  const auto matrix = [&](ExpertPart weight, ExpertPart scale, size_t rows, size_t cols) {
    numerics::WeightMatrix result{
        .rows = rows, .cols = cols, .data = image.data() + layout.tensor_position[size_t(weight)]};
    if (contract.format == ExpertFormat::Mxfp4) {
      result.format = numerics::WeightFormat::Mxfp4;
      result.scales = image.data() + layout.tensor_position[size_t(scale)];
    } else {
      result.format = location[size_t(weight)].dtype == checkpoint::DType::F32
                          ? numerics::WeightFormat::F32
                          : numerics::WeightFormat::Bf16;
    }
    return result;
  };
  const size_t input = contract.input_dim, inner = contract.inner_dim;
  return {.gate = matrix(ExpertPart::W1, ExpertPart::W1Scale, inner, input),
          .up = matrix(ExpertPart::W3, ExpertPart::W3Scale, inner, input),
          .down = matrix(ExpertPart::W2, ExpertPart::W2Scale, input, inner)};
}

Status check_scales(const checkpoint::Checkpoint& checkpoint, uint32_t layer, uint32_t expert,
                    const ImageLayout& layout, std::span<const std::byte> image) {
  const checkpoint::ExpertLocation& location = checkpoint.expert(layer, expert);
  for (const ExpertPart part : {ExpertPart::W1Scale, ExpertPart::W3Scale, ExpertPart::W2Scale}) {
    const checkpoint::TensorLocation& tensor = location[size_t(part)];
    if (tensor.size == 0) continue;
    const std::byte* scales = image.data() + layout.tensor_position[size_t(part)];
    const void* found = std::memchr(scales, kScaleNan, tensor.size);
    if (found == nullptr) continue;
    const uint64_t at = uint64_t(static_cast<const std::byte*>(found) - scales);
    return fail(
        ErrorCode::BadModel,
        fmt::format("layer {}: expert {}: {}: scale byte at offset {} is 255, which means not a "
                    "number; expected 0..254\n  the file is damaged: download this shard again",
                    layer, expert, checkpoint.file(tensor.file).path(), tensor.offset + at));
  }
  return {};
}

}  // namespace deltafin::memory
