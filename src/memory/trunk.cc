#include "memory/trunk.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"

namespace deltafin::memory {

using checkpoint::Checkpoint;
using checkpoint::DType;
using checkpoint::TensorKind;
using checkpoint::TensorLocation;
using checkpoint::TensorRole;
using checkpoint::TensorSpec;

namespace {

// Tensors start at cache-line borders; pieces of one read are large enough to run at disk speed and
// small enough that progress moves and a cancel is noticed.
constexpr uint64_t kTensorAlignment = 64;
constexpr uint64_t kPieceBytes = 8ull << 20;

numerics::WeightFormat format_of(DType dtype) {
  CHECK(dtype == DType::F32 || dtype == DType::BF16);  // the contract accepts no other
  return dtype == DType::F32 ? numerics::WeightFormat::F32 : numerics::WeightFormat::Bf16;
}

uint64_t element_count(const TensorLocation& location) {
  return location.size / checkpoint::bytes_of(location.dtype);
}

// One tensor on its way from file to memory.
struct Placement {
  const TensorSpec* spec = nullptr;
  TensorLocation location;
  size_t owner = 0;       // 0 the globals, i + 1 layer i
  uint64_t position = 0;  // in the arena
};

// Whether two tensors have the same bytes.
Result<bool> are_equal(const Checkpoint& checkpoint, const TensorLocation& a,
                       const TensorLocation& b, const CancelToken& cancel) {
  if (a.dtype != b.dtype || a.size != b.size) return false;
  std::vector<std::byte> from_a(std::min(kPieceBytes, a.size)), from_b(from_a.size());
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

// A tied model may come with an output head of its own, normally a copy of its embedding, which
// need not be in memory twice.
Result<bool> head_is_a_copy(const Checkpoint& checkpoint, const CancelToken& cancel) {
  const std::vector<TensorSpec>& specs = checkpoint.contract().globals;
  const auto find = [&](TensorRole role) {
    const auto found = std::ranges::find(specs, role, &TensorSpec::role);
    return size_t(found - specs.begin());
  };
  const size_t head = find(TensorRole::LmHead);
  if (!specs[head].optional || checkpoint.globals()[head].size == 0) return false;
  return are_equal(checkpoint, checkpoint.globals()[head],
                   checkpoint.globals()[find(TensorRole::Embedding)], cancel);
}

// `skip_head`: leaves the output head out.
std::vector<Placement> place_all(const Checkpoint& checkpoint, bool skip_head,
                                 uint64_t& arena_bytes) {
  std::vector<Placement> placements;
  const checkpoint::ModelContract& contract = checkpoint.contract();
  uint64_t cursor = 0;
  const auto place = [&](const std::vector<TensorSpec>& specs,
                         const std::vector<TensorLocation>& locations, size_t owner) {
    CHECK(specs.size() == locations.size());
    for (size_t i = 0; i < specs.size(); ++i) {
      if (locations[i].size == 0) continue;  // optional, and not there
      if (skip_head && specs[i].role == TensorRole::LmHead) continue;
      placements.push_back({&specs[i], locations[i], owner, cursor});
      cursor = round_up(cursor + locations[i].size, kTensorAlignment);
    }
  };
  place(contract.globals, checkpoint.globals(), 0);
  for (uint32_t layer = 0; layer < contract.layers.size(); ++layer)
    place(contract.layers[layer].trunk, checkpoint.trunk(layer), layer + 1);
  arena_bytes = cursor;
  return placements;
}

Status read_all(const Checkpoint& checkpoint, const std::vector<Placement>& placements,
                std::span<std::byte> arena, io::Reader& reader,
                const std::function<void(const TrunkProgress&)>& report,
                const CancelToken& cancel) {
  std::vector<io::ReadRequest> requests;
  TrunkProgress progress;
  for (const Placement& placement : placements) {
    const TensorLocation& location = placement.location;
    progress.bytes_total += location.size;
    for (uint64_t done = 0; done < location.size; done += kPieceBytes) {
      const uint64_t size = std::min(kPieceBytes, location.size - done);
      requests.push_back({.file = &checkpoint.file(location.file),
                          .offset = location.offset + done,
                          .into = arena.subspan(placement.position + done, size),
                          .tag = size});
    }
  }
  // In file order a spinning disk seeks least and any disk reads ahead best.
  std::ranges::sort(requests, [](const io::ReadRequest& a, const io::ReadRequest& b) {
    return std::pair(a.file->path(), a.offset) < std::pair(b.file->path(), b.offset);
  });
  const std::unique_ptr<io::ReadChannel> channel = reader.open_channel(io::ReadPriority::Trunk);
  channel->submit(requests);
  while (std::optional<io::ReadCompletion> completion = channel->wait()) {
    TRY_STATUS(cancel.check());
    TRY_STATUS(completion->status);
    progress.bytes_done += completion->tag;
    if (report) report(progress);
  }
  return {};
}

}  // namespace

const numerics::WeightMatrix& LayerWeights::matrix(TensorRole role) const {
  CHECK(entry(role).present && entry(role).kind == TensorKind::Matrix);
  return entry(role).matrix;
}

std::span<const float> LayerWeights::vector(TensorRole role) const {
  CHECK(entry(role).present && entry(role).kind == TensorKind::Vector);
  return entry(role).vector;
}

Result<Trunk> Trunk::load(const Checkpoint& checkpoint, io::Reader& reader,
                          const std::function<void(const TrunkProgress&)>& progress,
                          const CancelToken& cancel) {
  Trunk trunk;
  uint64_t arena_bytes = 0;
  TRY(const bool skip_head, head_is_a_copy(checkpoint, cancel));
  const std::vector<Placement> placements = place_all(checkpoint, skip_head, arena_bytes);
  TRY(trunk.stored_, io::Arena::map(arena_bytes));
  TRY_STATUS(read_all(checkpoint, placements, trunk.stored_.bytes(), reader, progress, cancel));

  uint64_t vector_floats = 0;
  for (const Placement& placement : placements)
    if (placement.spec->kind == TensorKind::Vector)
      vector_floats += round_up(element_count(placement.location), 16);
  trunk.widened_.resize(vector_floats);
  trunk.globals_ = std::make_unique<LayerWeights>();
  trunk.layers_.resize(checkpoint.contract().layers.size());

  float* next_vector = trunk.widened_.data();
  for (const Placement& placement : placements) {
    const TensorLocation& location = placement.location;
    const std::byte* stored = trunk.stored_.bytes().data() + placement.position;
    LayerWeights& owner =
        placement.owner == 0 ? *trunk.globals_ : trunk.layers_[placement.owner - 1];
    LayerWeights::Entry& entry = owner.entries_[size_t(placement.spec->role)];
    entry.present = true;
    entry.kind = placement.spec->kind;
    trunk.bytes_ += location.size;
    if (entry.kind == TensorKind::Matrix) {
      const std::vector<uint64_t>& shape = placement.spec->shapes[0];
      CHECK(shape.size() == 2);
      entry.matrix = {
          .format = format_of(location.dtype), .rows = shape[0], .cols = shape[1], .data = stored};
    } else {
      entry.vector = {next_vector, element_count(location)};
      numerics::widen(format_of(location.dtype), stored, next_vector, entry.vector.size());
      next_vector += round_up(entry.vector.size(), 16);
    }
  }
  return trunk;
}

}  // namespace deltafin::memory
