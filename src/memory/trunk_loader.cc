// How a trunk comes to be: what goes where, and the reads that bring it there.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"
#include "memory/trunk.h"

namespace deltafin::memory {

using checkpoint::Checkpoint;
using checkpoint::DType;
using checkpoint::TensorKind;
using checkpoint::TensorLocation;
using checkpoint::TensorRole;
using checkpoint::TensorSpec;

namespace {

constexpr uint64_t kCompareBytes = 8 << 20;
constexpr uint64_t kVectorAlignment = kTrunkVectorAlignment;

numerics::WeightFormat format_of(DType dtype) {
  CHECK(dtype == DType::F32 || dtype == DType::BF16);  // the contract accepts no other
  return dtype == DType::F32 ? numerics::WeightFormat::F32 : numerics::WeightFormat::Bf16;
}

uint64_t element_count(const TensorLocation& location) {
  return location.size / checkpoint::bytes_of(location.dtype);
}

size_t find_global(const Checkpoint& checkpoint, TensorRole role) {
  const std::vector<TensorSpec>& specs = checkpoint.contract().globals;
  return size_t(std::ranges::find(specs, role, &TensorSpec::role) - specs.begin());
}

// checkpoint.globals() without the table that only serves to look rows up, or the head that is it.
std::vector<TensorLocation> kept_globals(const Checkpoint& checkpoint, bool own_head) {
  std::vector<TensorLocation> locations = checkpoint.globals();
  locations[find_global(checkpoint, own_head ? TensorRole::Embedding : TensorRole::LmHead)] = {};
  return locations;
}

ImageLayout lay_out_matrices(const std::vector<TensorSpec>& specs,
                             std::vector<TensorLocation> locations) {
  CHECK(specs.size() == locations.size());
  for (size_t i = 0; i < specs.size(); ++i)
    if (specs[i].kind != TensorKind::Matrix) locations[i] = {};
  return lay_out_image(locations, kTrunkGapBytes);
}

// Whether two tensors have the same bytes.
Result<bool> are_equal(const Checkpoint& checkpoint, const TensorLocation& a,
                       const TensorLocation& b, const CancelToken& cancel) {
  if (a.dtype != b.dtype || a.size != b.size) return false;
  std::vector<std::byte> from_a(std::min(kCompareBytes, a.size)), from_b(from_a.size());
  for (uint64_t done = 0; done < a.size; done += from_a.size()) {
    TRY_STATUS(cancel.check());
    const size_t size = size_t(std::min<uint64_t>(from_a.size(), a.size - done));
    const std::span part_a = std::span(from_a).first(size), part_b = std::span(from_b).first(size);
    TRY_STATUS(io::read_exactly(checkpoint.file(a.file), a.offset + done, part_a));
    TRY_STATUS(io::read_exactly(checkpoint.file(b.file), b.offset + done, part_b));
    if (std::memcmp(part_a.data(), part_b.data(), size) != 0) return false;
  }
  return true;
}

// Whether there is an output head that is not the embedding. A tied model may come with a head of
// its own, normally a copy of its embedding, which need not be in memory twice.
Result<bool> has_own_head(const Checkpoint& checkpoint, const CancelToken& cancel) {
  const size_t head = find_global(checkpoint, TensorRole::LmHead);
  if (checkpoint.globals()[head].size == 0) return false;
  if (!checkpoint.contract().globals[head].optional) return true;
  const size_t embedding = find_global(checkpoint, TensorRole::Embedding);
  TRY(const bool equal,
      are_equal(checkpoint, checkpoint.globals()[head], checkpoint.globals()[embedding], cancel));
  return !equal;
}

}  // namespace

ImageLayout lay_out_layer(const Checkpoint& checkpoint, uint32_t layer) {
  return lay_out_matrices(checkpoint.contract().layers[layer].trunk, checkpoint.trunk(layer));
}

ImageLayout lay_out_globals(const Checkpoint& checkpoint, bool own_head) {
  return lay_out_matrices(checkpoint.contract().globals, kept_globals(checkpoint, own_head));
}

// Builds one trunk.
class TrunkLoader {
 public:
  TrunkLoader(const Checkpoint& checkpoint, io::Reader& reader, ThreadTeam& team,
              const Clock& clock, const std::function<void(const TrunkProgress&)>& report,
              const CancelToken& cancel)
      : checkpoint_(checkpoint),
        reader_(reader),
        team_(team),
        clock_(clock),
        report_(report),
        cancel_(cancel),
        channel_(reader.open_channel(io::ReadPriority::Trunk)) {}

  Result<std::unique_ptr<Trunk>> load(uint32_t resident_layers) {
    const uint32_t layer_count = uint32_t(checkpoint_.contract().layers.size());
    trunk_.reset(new Trunk);
    trunk_->layers_.resize(layer_count);
    trunk_->counters_.resident_layers = std::min(resident_layers, layer_count);
    trunk_->counters_.streamed_layers = layer_count - trunk_->counters_.resident_layers;
    TRY(own_head_, has_own_head(checkpoint_, cancel_));
    TRY_STATUS(read_vectors());
    TRY_STATUS(read_images());
    TRY_STATUS(open_stream());
    TRY_STATUS(open_embedding());
    return std::move(trunk_);
  }

 private:
  // Calls visit(weights, spec, location) for the tensors of the model, each where it belongs.
  template <class Visit>
  void for_each_tensor(Visit&& visit) {
    const checkpoint::ModelContract& contract = checkpoint_.contract();
    const auto visit_all = [&](LayerWeights& weights, const std::vector<TensorSpec>& specs,
                               const std::vector<TensorLocation>& locations) {
      for (size_t i = 0; i < specs.size(); ++i)
        if (locations[i].size > 0) visit(weights, specs[i], locations[i]);
    };
    visit_all(trunk_->globals_, contract.globals, checkpoint_.globals());
    for (uint32_t layer = 0; layer < contract.layers.size(); ++layer)
      visit_all(trunk_->layers_[layer], contract.layers[layer].trunk, checkpoint_.trunk(layer));
  }

  // Waits for what was submitted.
  Status wait() {
    while (std::optional<io::ReadCompletion> completion = channel_->wait()) {
      TRY_STATUS(cancel_.check());
      TRY_STATUS(completion->status);
      progress_.bytes_done += completion->tag;
      if (report_) report_(progress_);
    }
    return {};
  }

  Status read_vectors() {
    uint64_t stored_bytes = 0, floats = 0;
    for_each_tensor([&](LayerWeights&, const TensorSpec& spec, const TensorLocation& location) {
      if (spec.kind != TensorKind::Vector) return;
      stored_bytes += location.size;
      floats += round_up(element_count(location), kVectorAlignment);
    });
    std::vector<std::byte> stored(stored_bytes);
    std::vector<io::ReadRequest> requests;
    uint64_t position = 0;
    for_each_tensor([&](LayerWeights&, const TensorSpec& spec, const TensorLocation& location) {
      if (spec.kind != TensorKind::Vector) return;
      requests.push_back({.file = &checkpoint_.file(location.file),
                          .offset = location.offset,
                          .into = std::span(stored).subspan(position, location.size),
                          .tag = 0});
      position += location.size;
    });
    channel_->submit(requests);
    if (Status status = wait(); !status) {
      channel_->cancel();  // before its memory goes
      return status;
    }
    trunk_->widened_.resize(floats);
    float* next = trunk_->widened_.data();
    const std::byte* from = stored.data();
    for_each_tensor([&](LayerWeights& weights, const TensorSpec& spec,
                        const TensorLocation& location) {
      if (spec.kind != TensorKind::Vector) return;
      const size_t count = element_count(location);
      LayerWeights::Entry& entry = weights.entries_[size_t(spec.role)];
      entry = {.present = true, .kind = TensorKind::Vector, .matrix = {}, .vector = {next, count}};
      numerics::widen(format_of(location.dtype), from, next, count);
      next += round_up(count, kVectorAlignment);
      from += location.size;
      trunk_->counters_.resident_bytes += location.size;
    });
    return {};
  }

  // The places of a layout's matrices; `weights` then has all of them but their bytes.
  static std::vector<Trunk::MatrixPlace> describe(LayerWeights& weights,
                                                  const std::vector<TensorSpec>& specs,
                                                  const std::vector<TensorLocation>& locations,
                                                  const ImageLayout& layout) {
    std::vector<Trunk::MatrixPlace> places;
    for (size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].kind != TensorKind::Matrix || locations[i].size == 0) continue;
      const std::vector<uint64_t>& shape = specs[i].shapes[0];
      CHECK(shape.size() == 2);
      weights.entries_[size_t(specs[i].role)] = {
          .present = true,
          .kind = TensorKind::Matrix,
          .matrix = {.format = format_of(locations[i].dtype), .rows = shape[0], .cols = shape[1]},
          .vector = {}};
      places.push_back({specs[i].role, layout.tensor_position[i]});
    }
    return places;
  }

  Status read_images() {
    const checkpoint::ModelContract& contract = checkpoint_.contract();
    std::vector<ImageLayout> layouts = {lay_out_globals(checkpoint_, own_head_)};
    for (uint32_t layer = 0; layer < trunk_->counters_.resident_layers; ++layer)
      layouts.push_back(lay_out_layer(checkpoint_, layer));
    uint64_t bytes = 0;
    for (const ImageLayout& layout : layouts) {
      bytes += layout.bytes;
      for (const FileExtent& extent : layout.extents) progress_.bytes_total += extent.size;
    }
    TRY(trunk_->stored_, io::Arena::map(bytes));

    std::span<std::byte> rest = trunk_->stored_.bytes();
    for (size_t i = 0; i < layouts.size(); ++i) {
      LayerWeights& weights = i == 0 ? trunk_->globals_ : trunk_->layers_[i - 1];
      const std::vector<TensorSpec>& specs =
          i == 0 ? contract.globals : contract.layers[i - 1].trunk;
      const std::vector<TensorLocation> locations =
          i == 0 ? kept_globals(checkpoint_, own_head_) : checkpoint_.trunk(uint32_t(i - 1));
      const std::span<std::byte> image = rest.first(layouts[i].bytes);
      rest = rest.subspan(layouts[i].bytes);
      Trunk::bind(weights, describe(weights, specs, locations, layouts[i]), image.data());
      for (const TensorSpec& spec : specs)
        if (spec.kind == TensorKind::Matrix)
          trunk_->counters_.resident_bytes += locations[size_t(&spec - specs.data())].size;
      TRY_STATUS(cancel_.check());
      io::touch(image, team_);  // while the images before it are read
      std::vector<io::ReadRequest> requests;
      append_reads(checkpoint_, layouts[i], image, requests);
      channel_->submit(requests);
    }
    return wait();
  }

  Status open_stream() {
    const uint32_t first = trunk_->counters_.resident_layers;
    if (trunk_->counters_.streamed_layers == 0) return {};
    std::vector<ImageLayout> layouts;
    uint64_t place_bytes = 0;
    for (uint32_t layer = first; layer < trunk_->layers_.size(); ++layer) {
      layouts.push_back(lay_out_layer(checkpoint_, layer));
      place_bytes = std::max(place_bytes, layouts.back().bytes);
      for (const FileExtent& extent : layouts.back().extents)
        trunk_->counters_.streamed_bytes += extent.size;
      trunk_->places_.push_back(describe(trunk_->layers_[layer],
                                         checkpoint_.contract().layers[layer].trunk,
                                         checkpoint_.trunk(layer), layouts.back()));
    }
    TRY(io::Arena places, io::Arena::map(2 * place_bytes));
    io::touch(places.bytes(), team_);
    trunk_->stream_.emplace(checkpoint_, reader_, clock_, first, std::move(layouts),
                            std::move(places), place_bytes);
    return {};
  }

  Status open_embedding() {
    const size_t index = find_global(checkpoint_, TensorRole::Embedding);
    const TensorSpec& spec = checkpoint_.contract().globals[index];
    const TensorLocation& location = checkpoint_.globals()[index];
    numerics::WeightMatrix table{
        .format = format_of(location.dtype), .rows = spec.shapes[0][0], .cols = spec.shapes[0][1]};
    if (!own_head_) table = trunk_->globals_.matrix(TensorRole::Embedding);
    Result<EmbeddingTable> opened = EmbeddingTable::open(checkpoint_, reader_, location, table);
    if (!opened) return std::unexpected(std::move(opened).error());
    trunk_->embedding_ = std::move(*opened);
    return {};
  }

  const Checkpoint& checkpoint_;
  io::Reader& reader_;
  ThreadTeam& team_;
  const Clock& clock_;
  const std::function<void(const TrunkProgress&)>& report_;
  const CancelToken& cancel_;
  std::unique_ptr<Trunk> trunk_;  // dies after the channel that reads into it
  std::unique_ptr<io::ReadChannel> channel_;
  bool own_head_ = true;
  TrunkProgress progress_;
};

Result<std::unique_ptr<Trunk>> Trunk::load(
    const Checkpoint& checkpoint, io::Reader& reader, ThreadTeam& team, const Clock& clock,
    const TrunkOptions& options, const std::function<void(const TrunkProgress&)>& progress,
    const CancelToken& cancel) {
  return TrunkLoader(checkpoint, reader, team, clock, progress, cancel)
      .load(options.resident_layers);
}

}  // namespace deltafin::memory
