// Where the parts of one expert go when they are read into a slot.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace deltafin::memory {

// A run of file bytes that one read fetches.
struct ExpertExtent {
  uint32_t file = 0;
  uint64_t offset = 0;  // in the file
  uint64_t size = 0;
  uint64_t slot_offset =
      0;  // congruent to `offset` modulo kExtentAlignment, as direct I/O wants it
};
inline constexpr uint64_t kExtentAlignment = 4096;

struct ExpertLayout {
  std::vector<ExpertExtent> extents;
  std::array<uint64_t, checkpoint::kExpertPartCount> part_offset{};  // in the slot
  uint64_t slot_bytes = 0;
};

// Parts that touch in a file become one extent (K3 stores an expert's six tensors back to back: one
// read of 17.5 MB); parts that do not, or that lie in different shards, get one each.
ExpertLayout lay_out_expert(const checkpoint::ExpertLocation& location);

}  // namespace deltafin::memory
