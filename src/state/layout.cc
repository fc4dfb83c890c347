#include "state/layout.h"

namespace deltafin::state {

uint64_t Layout::bytes_per_position() const {
  uint64_t floats = 0;
  for (const LayerLayout& layer : layers)
    if (const PagedLayout* paged = std::get_if<PagedLayout>(&layer)) floats += paged->row_width;
  return floats * sizeof(float);
}

uint64_t Layout::fixed_bytes() const {
  uint64_t floats = 0;
  for (const LayerLayout& layer : layers)
    if (const RecurrentLayout* recurrent = std::get_if<RecurrentLayout>(&layer))
      floats += uint64_t{recurrent->window_rows} * recurrent->window_width + recurrent->matrix_size;
  return floats * sizeof(float);
}

}  // namespace deltafin::state
