#include "memory/model_sizes.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"
#include "checkpoint/inventory.h"
#include "memory/image_layout.h"
#include "memory/trunk.h"

namespace deltafin::memory {

using checkpoint::Checkpoint;
using checkpoint::ExpertContract;
using checkpoint::ExpertFormat;
using checkpoint::ExpertPart;
using checkpoint::ModelContract;
using checkpoint::TensorKind;
using checkpoint::TensorLocation;
using checkpoint::TensorRole;
using checkpoint::TensorSpec;

namespace {

// The program, its libraries and threads (25 MB, measured), a tokenizer of 160,000 entries with its
// hash tables, and what malloc keeps of what it has given out once.
constexpr uint64_t kProcessBytes = 64ull << 20;
// Name, shape and place of a tensor, in the tables of a checkpoint and while they are built.
constexpr uint64_t kBytesOfATensor = 512;
// Arenas and large scratch end within a huge page, and --stats reads the disk into 32 MiB when the
// passes are over.
constexpr uint64_t kGapBytes = 24ull << 20;
// A pass has a row of logits; penalties, sorting and the sum of a sampler need as much again.
constexpr uint64_t kLogitsRows = 6;
// Columns that the experts' scratch has room for (ExpertCompute).
constexpr uint64_t kScratchColumns = 64;

uint64_t bytes_of_expert(const ExpertContract& experts) {
  const bool is_packed = experts.format == ExpertFormat::Mxfp4;
  uint64_t bytes = 0;
  for (size_t i = 0; i < checkpoint::kExpertPartCount; ++i) {
    const ExpertPart part{static_cast<uint8_t>(i)};
    const bool is_scale =
        part == ExpertPart::W1Scale || part == ExpertPart::W3Scale || part == ExpertPart::W2Scale;
    if (is_scale && !is_packed) continue;
    const checkpoint::PartShape shape = part_shape(experts, part);
    bytes += shape.rows * shape.cols *
             bytes_of(is_packed ? checkpoint::DType::U8 : checkpoint::DType::BF16);
  }
  return bytes;
}

uint64_t scratch_bytes(const ExpertContract& experts) {
  const uint64_t floats = 3 * (uint64_t{experts.input_dim} + experts.inner_dim);
  return kScratchColumns * floats * sizeof(float);
}

bool is_tied(const ModelContract& contract) {
  return contract.qwen() != nullptr && contract.qwen()->tied_embeddings;
}

// What a token reads of a tensor: all of it, unless it is a table that rows are looked up in.
bool is_read_whole(const TensorSpec& spec, bool tied) {
  return !spec.optional && (spec.role != TensorRole::Embedding || tied);
}

uint64_t vector_bytes(const TensorSpec& spec) {
  if (spec.kind != TensorKind::Vector) return 0;
  return round_up(checkpoint::element_count(spec).value_or(0), kTrunkVectorAlignment) *
         sizeof(float);
}

// What both ways to know a model have in common.
ModelSizes common_sizes(const ModelContract& contract) {
  const checkpoint::Inventory inventory = take_inventory(contract);
  ModelSizes sizes;
  sizes.experts_per_token = contract.experts_per_token();
  sizes.active_parameters = inventory.active_parameter_count;
  uint64_t scratch = 0;
  for (const checkpoint::LayerContract& layer : contract.layers) {
    if (!layer.experts) continue;
    sizes.experts_of_layers.push_back(layer.experts->expert_count);
    sizes.expert_count += layer.experts->expert_count;
    sizes.expert_bytes = std::max(sizes.expert_bytes, bytes_of_expert(*layer.experts));
    scratch = std::max(scratch, scratch_bytes(*layer.experts));
  }
  sizes.overhead_bytes = kProcessBytes + kGapBytes + inventory.tensor_count * kBytesOfATensor +
                         scratch + kLogitsRows * contract.vocab_size() * sizeof(float);
  return sizes;
}

}  // namespace

ModelSizes sizes_of(const ModelContract& contract) {
  ModelSizes sizes = common_sizes(contract);
  const bool tied = is_tied(contract);
  // Returns the most that an image of these tensors takes.
  const auto add = [&](const std::vector<TensorSpec>& specs) {
    uint64_t image = 0;
    for (const TensorSpec& spec : specs) {
      const uint64_t bytes = checkpoint::element_count(spec).value_or(0) * bytes_of(spec.published);
      sizes.trunk_fixed_bytes += vector_bytes(spec);
      if (is_read_whole(spec, tied)) sizes.trunk_bytes_of_a_token += bytes;
      if (spec.kind == TensorKind::Matrix && is_read_whole(spec, tied))
        image += round_up(bytes, kExtentAlignment) + 2 * kExtentAlignment + kTrunkGapBytes;
    }
    return image;
  };
  sizes.trunk_fixed_bytes += add(contract.globals);
  for (const checkpoint::LayerContract& layer : contract.layers)
    sizes.trunk_layer_bytes.push_back(add(layer.trunk));
  if (sizes.expert_count > 0)
    sizes.expert_slot_bytes = round_up(sizes.expert_bytes, kExtentAlignment) +
                              (checkpoint::kExpertPartCount + 1) * kExtentAlignment;
  return sizes;
}

ModelSizes sizes_of(const Checkpoint& checkpoint) {
  const ModelContract& contract = checkpoint.contract();
  ModelSizes sizes = common_sizes(contract);
  const bool tied = is_tied(contract);
  const auto add = [&](const std::vector<TensorSpec>& specs,
                       const std::vector<TensorLocation>& locations) {
    CHECK(specs.size() == locations.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      if (locations[i].size == 0) continue;
      sizes.trunk_fixed_bytes += vector_bytes(specs[i]);
      if (is_read_whole(specs[i], tied)) sizes.trunk_bytes_of_a_token += locations[i].size;
    }
  };
  add(contract.globals, checkpoint.globals());
  // Whether a tied model's head is a copy turns out when it is loaded; either is as large.
  sizes.trunk_fixed_bytes += lay_out_globals(checkpoint, !tied).bytes;
  sizes.expert_bytes = 0;
  for (uint32_t layer = 0; layer < contract.layers.size(); ++layer) {
    add(contract.layers[layer].trunk, checkpoint.trunk(layer));
    sizes.trunk_layer_bytes.push_back(lay_out_layer(checkpoint, layer).bytes);
    if (!contract.layers[layer].experts) continue;
    for (uint32_t expert = 0; expert < contract.layers[layer].experts->expert_count; ++expert) {
      const checkpoint::ExpertLocation& location = checkpoint.expert(layer, expert);
      uint64_t bytes = 0;
      for (const TensorLocation& part : location) bytes += part.size;
      sizes.expert_bytes = std::max(sizes.expert_bytes, bytes);
      sizes.expert_slot_bytes = std::max(sizes.expert_slot_bytes, lay_out_image(location, 0).bytes);
    }
  }
  return sizes;
}

}  // namespace deltafin::memory
