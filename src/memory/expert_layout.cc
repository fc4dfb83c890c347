#include "memory/expert_layout.h"

#include <algorithm>

#include "base/checked_math.h"

namespace deltafin::memory {

ExpertLayout lay_out_expert(const checkpoint::ExpertLocation& location) {
  std::vector<size_t> parts;
  for (size_t part = 0; part < location.size(); ++part)
    if (location[part].size > 0) parts.push_back(part);
  std::ranges::sort(parts, [&](size_t a, size_t b) {
    return std::pair(location[a].file, location[a].offset) <
           std::pair(location[b].file, location[b].offset);
  });

  ExpertLayout layout;
  for (const size_t part : parts) {
    const checkpoint::TensorLocation& tensor = location[part];
    const bool touches = !layout.extents.empty() && layout.extents.back().file == tensor.file &&
                         layout.extents.back().offset + layout.extents.back().size == tensor.offset;
    if (touches) {
      ExpertExtent& extent = layout.extents.back();
      layout.part_offset[part] = extent.slot_offset + extent.size;
      extent.size += tensor.size;
    } else {
      const uint64_t slot_offset =
          round_up(layout.slot_bytes, kExtentAlignment) + tensor.offset % kExtentAlignment;
      layout.extents.push_back({tensor.file, tensor.offset, tensor.size, slot_offset});
      layout.part_offset[part] = slot_offset;
    }
    layout.slot_bytes = layout.extents.back().slot_offset + layout.extents.back().size;
  }
  layout.slot_bytes = round_up(layout.slot_bytes, kExtentAlignment);
  return layout;
}

}  // namespace deltafin::memory
