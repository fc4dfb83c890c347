#include "memory/image_layout.h"

#include <algorithm>
#include <utility>

#include "base/checked_math.h"

namespace deltafin::memory {

ImageLayout lay_out_image(std::span<const checkpoint::TensorLocation> tensors,
                          uint64_t largest_gap) {
  std::vector<size_t> order;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].size > 0) order.push_back(i);
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return std::pair(tensors[a].file, tensors[a].offset) <
           std::pair(tensors[b].file, tensors[b].offset);
  });

  ImageLayout layout;
  layout.tensor_position.resize(tensors.size());
  for (const size_t i : order) {
    const checkpoint::TensorLocation& tensor = tensors[i];
    FileExtent* last = layout.extents.empty() ? nullptr : &layout.extents.back();
    if (last == nullptr || last->file != tensor.file ||
        tensor.offset - (last->offset + last->size) > largest_gap) {
      layout.extents.push_back({.file = tensor.file,
                                .offset = tensor.offset,
                                .size = 0,
                                .position = round_up(layout.bytes, kExtentAlignment) +
                                            tensor.offset % kExtentAlignment});
      last = &layout.extents.back();
    }
    layout.tensor_position[i] = last->position + (tensor.offset - last->offset);
    last->size = tensor.offset + tensor.size - last->offset;
    layout.bytes = last->position + last->size;
  }
  layout.bytes = round_up(layout.bytes, kExtentAlignment);
  return layout;
}

}  // namespace deltafin::memory
