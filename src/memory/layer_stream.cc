#include "memory/layer_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deltafin::memory {

namespace {

// Large enough to run at disk speed, small enough that a cancel is noticed and demand, which goes
// first, never waits long.
constexpr uint64_t kPieceBytes = 8ull << 20;

}  // namespace

void append_reads(const checkpoint::Checkpoint& checkpoint, const ImageLayout& layout,
                  std::span<std::byte> base, std::vector<io::ReadRequest>& requests) {
  for (const FileExtent& extent : layout.extents) {
    for (uint64_t done = 0; done < extent.size;) {
      const uint64_t begin = extent.offset + done;
      const uint64_t size = std::min(extent.size - done, kPieceBytes - begin % kExtentAlignment);
      requests.push_back({.file = &checkpoint.file(extent.file),
                          .offset = begin,
                          .into = base.subspan(extent.position + done, size),
                          .tag = size,
                          .surroundings_writable = true});  // image_layout keeps them free
      done += size;
    }
  }
}

LayerStream::LayerStream(const checkpoint::Checkpoint& checkpoint, io::Reader& reader,
                         const Clock& clock, uint32_t first_layer, std::vector<ImageLayout> layouts,
                         io::Arena places, uint64_t place_bytes)
    : checkpoint_(checkpoint),
      clock_(clock),
      first_layer_(first_layer),
      layouts_(std::move(layouts)),
      arena_(std::move(places)) {
  for (size_t i = 0; i < places_.size(); ++i) {
    places_[i].bytes = arena_.bytes().subspan(i * place_bytes, place_bytes);
    places_[i].channel = reader.open_channel(io::ReadPriority::Trunk);
  }
}

LayerStream::Place* LayerStream::find(uint32_t layer) {
  const auto place = std::ranges::find(places_, layer, &Place::layer);
  return place == places_.end() ? nullptr : &*place;
}

void LayerStream::read_into(Place& place, uint32_t layer) {
  CHECK(!place.leased);
  place.channel->cancel();  // what nobody wants any more
  place.layer = layer;
  requests_.clear();
  append_reads(checkpoint_, layouts_[layer - first_layer_], place.bytes, requests_);
  place.channel->submit(requests_);
  ++counters_.layers_read;
}

void LayerStream::expect(uint32_t layer, uint32_t keep) {
  if (find(layer) != nullptr) return;
  for (Place& place : places_)
    if (!place.leased && place.layer != keep) return read_into(place, layer);
}

void LayerStream::expect_first() {
  const uint32_t second = after(first_layer_);
  expect(first_layer_, second);
  expect(second, first_layer_);
}

Result<const std::byte*> LayerStream::lease(uint32_t layer, const CancelToken& cancel) {
  const uint32_t next = after(layer);
  Place* place = find(layer);
  if (place == nullptr) {
    expect(layer, next);
    place = find(layer);
  }
  CHECK(place != nullptr && !place->leased);
  place->leased = true;  // so that nothing else is read there
  expect(next, layer);
  if (Status status = wait_for(*place, cancel); !status) {
    place->leased = false;
    return std::unexpected(
        std::move(status).error().within(fmt::format("layer {} of the trunk", layer)));
  }
  return place->bytes.data();
}

Status LayerStream::wait_for(Place& place, const CancelToken& cancel) {
  if (place.channel->outstanding() == 0) return {};
  const std::chrono::nanoseconds start = clock_.now();
  Status status;
  while (status && place.channel->outstanding() > 0) {
    status = cancel.check();
    if (!status) break;
    const std::optional<io::ReadCompletion> completion = place.channel->wait();
    if (completion->status) {
      counters_.bytes_read += completion->tag;
    } else {
      status = completion->status;
      place.channel->cancel();
      place.layer = kNone;
    }
  }
  counters_.wait += clock_.now() - start;
  return status;
}

void LayerStream::release(uint32_t layer) {
  Place* place = find(layer);
  CHECK(place != nullptr && place->leased);
  place->leased = false;
  const uint32_t next = after(layer);
  expect(after(next), next);
}

}  // namespace deltafin::memory
