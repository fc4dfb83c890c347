// The layers of a trunk that do not fit into memory: read again for every pass, each into one of
// two places while the layer in the other one is computed with.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "io/arena.h"
#include "io/reader.h"
#include "memory/image_layout.h"

namespace deltafin::memory {

struct StreamCounters {
  uint64_t layers_read = 0;
  uint64_t bytes_read = 0;
  std::chrono::nanoseconds wait{0};  // for layers that were not there yet
};

// Appends the reads of an image at `base`, in pieces that end at borders of kExtentAlignment in
// the file. A piece carries its size as tag.
void append_reads(const checkpoint::Checkpoint& checkpoint, const ImageLayout& layout,
                  std::span<std::byte> base, std::vector<io::ReadRequest>& requests);

// Not thread-safe: the engine thread owns it.
class LayerStream {
 public:
  // Of layers [first_layer, first_layer + layouts.size()). `places`: two images of `place_bytes`,
  // a multiple of kExtentAlignment. The references must outlive the stream.
  LayerStream(const checkpoint::Checkpoint& checkpoint, io::Reader& reader, const Clock& clock,
              uint32_t first_layer, std::vector<ImageLayout> layouts, io::Arena places,
              uint64_t place_bytes);

  bool holds(uint32_t layer) const { return layer >= first_layer_; }

  // The image of `layer`, to stay until release(). Waits for it, and has the next one read
  // meanwhile. At most one layer is leased at a time. Errors: Io, naming layer, file and offset;
  // Cancelled, after which the reads go on.
  Result<const std::byte*> lease(uint32_t layer, const CancelToken& cancel);
  // Has the layer after the next one read into the place that becomes free.
  void release(uint32_t layer);
  // Somebody is before these layers: has the first two read.
  void expect_first();

  const StreamCounters& counters() const { return counters_; }

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Place {
    std::span<std::byte> bytes;
    std::unique_ptr<io::ReadChannel> channel;
    uint32_t layer = kNone;  // whose image is there, or on its way
    bool leased = false;
  };

  // The layer that the next lease is likely for: passes go through all layers, again and again.
  uint32_t after(uint32_t layer) const {
    return layer + 1 - first_layer_ < layouts_.size() ? layer + 1 : first_layer_;
  }
  Place* find(uint32_t layer);
  void read_into(Place& place, uint32_t layer);
  // Reads `layer` into a place that is free and not that of `keep`, unless it is there already.
  void expect(uint32_t layer, uint32_t keep);
  Status wait_for(Place& place, const CancelToken& cancel);

  const checkpoint::Checkpoint& checkpoint_;
  const Clock& clock_;
  uint32_t first_layer_;
  std::vector<ImageLayout> layouts_;
  io::Arena arena_;
  std::array<Place, 2> places_;
  std::vector<io::ReadRequest> requests_;
  StreamCounters counters_;
};

}  // namespace deltafin::memory
