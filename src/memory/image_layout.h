// Where tensors go when they are read from their files into one piece of memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace deltafin::memory {

// Extents lie as direct reads want them: congruent to their files modulo this, with nothing else
// between them and the borders around them.
inline constexpr uint64_t kExtentAlignment = 4096;

// A run of file bytes that one read fetches.
struct FileExtent {
  uint32_t file = 0;
  uint64_t offset = 0;    // in the file
  uint64_t size = 0;      // bytes
  uint64_t position = 0;  // in the image; congruent to `offset` modulo kExtentAlignment
};

struct ImageLayout {
  std::vector<FileExtent> extents;        // in the order of files and offsets
  std::vector<uint64_t> tensor_position;  // in the image, of each tensor; 0 where it has no bytes
  uint64_t bytes = 0;                     // of the image, a multiple of kExtentAlignment
};

// Tensors with no more than `largest_gap` bytes between them in a file become one extent, gap and
// all. Tensors of size 0 are not there.
ImageLayout lay_out_image(std::span<const checkpoint::TensorLocation> tensors,
                          uint64_t largest_gap);

}  // namespace deltafin::memory
