// What the bytes of an expert mean that were read from its file into one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "memory/expert_compute.h"
#include "memory/image_layout.h"

namespace deltafin::memory {

// `image` holds the expert as `layout` says; it must outlive the weights.
ExpertWeights weights_in(const checkpoint::Checkpoint& checkpoint, uint32_t layer, uint32_t expert,
                         const ImageLayout& layout, std::span<const std::byte> image);

// A scale of 255 would turn a row into NaN and every token after it into noise. Errors: BadModel,
// naming layer, expert, file and offset.
Status check_scales(const checkpoint::Checkpoint& checkpoint, uint32_t layer, uint32_t expert,
                    const ImageLayout& layout, std::span<const std::byte> image);

}  // namespace deltafin::memory
