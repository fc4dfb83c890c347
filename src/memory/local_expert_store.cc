#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "io/arena.h"
#include "memory/expert_cache.h"
#include "memory/expert_compute.h"
#include "memory/expert_store.h"
#include "memory/image_layout.h"

namespace deltafin::memory {

using checkpoint::ExpertContract;
using checkpoint::ExpertFormat;
using checkpoint::ExpertPart;

namespace {

// Compute needs one expert while the next is being read.
constexpr uint32_t kSlotsAtLeast = 2;

// Experts computed before their slots are given back: decode's all, so that they share the team's
// regions, and in prefill few enough that reads go on meanwhile.
constexpr size_t kJobsAtOnce = 16;

// E8M0 knows one value that is not a number.
constexpr int kScaleNan = 255;

class LocalExpertStore final : public ExpertStore {
 public:
  LocalExpertStore(const checkpoint::Checkpoint& checkpoint, io::Reader& reader, ThreadTeam& team,
                   const numerics::Kernels& kernels, const ExpertFunction& function,
                   io::Arena arena, uint64_t slot_bytes, uint32_t slot_count, size_t expert_stride)
      : checkpoint_(checkpoint),
        channel_(reader.open_channel(io::ReadPriority::Demand)),
        compute_(team, kernels, function),
        arena_(std::move(arena)),
        slot_bytes_(slot_bytes),
        expert_stride_(expert_stride),
        cache_(slot_count, expert_stride * checkpoint.contract().layers.size()) {
    counters_.cache_slots = slot_count;
    counters_.cache_bytes = slot_count * slot_bytes;
  }

  Status run(const ExpertBatch& batch, std::span<float> outputs,
             const CancelToken& cancel) override;
  ExpertCounters snapshot() const override { return counters_; }

 private:
  // One expert of the batch and the edges that want it.
  struct Need {
    uint32_t expert = 0;
    std::span<const uint32_t> edges;
    ImageLayout layout;
    ExpertCache::Slot slot = 0;
    size_t reads_outstanding = 0;
    enum class State : uint8_t { Waiting, Reading, Leased, Done } state = State::Waiting;
  };

  size_t key(uint32_t layer, uint32_t expert) const { return layer * expert_stride_ + expert; }
  std::span<std::byte> slot_bytes(ExpertCache::Slot slot) const {
    return arena_.bytes().subspan(slot * slot_bytes_, slot_bytes_);
  }

  void group_edges(const ExpertBatch& batch);
  Status run_needs(const ExpertBatch& batch, std::span<float> outputs, const CancelToken& cancel);
  void start_reads(uint32_t layer);
  Status take_completion(uint32_t layer, const io::ReadCompletion& completion);
  Status compute_leased(const ExpertBatch& batch, std::span<float> outputs,
                        const CancelToken& cancel);
  Status check_scales(uint32_t layer, const Need& need) const;
  ExpertWeights weights_in(uint32_t layer, const Need& need) const;
  void abandon();

  const checkpoint::Checkpoint& checkpoint_;
  std::unique_ptr<io::ReadChannel> channel_;
  ExpertCompute compute_;
  io::Arena arena_;
  uint64_t slot_bytes_;
  size_t expert_stride_;
  ExpertCache cache_;
  ExpertCounters counters_;

  // Of the run in progress.
  std::vector<Need> needs_;
  std::vector<uint32_t> edge_order_;
  std::vector<ExpertJob> jobs_;
  size_t next_to_read_ = 0;
};

void LocalExpertStore::group_edges(const ExpertBatch& batch) {
  edge_order_.resize(batch.edges.size());
  for (uint32_t i = 0; i < edge_order_.size(); ++i) edge_order_[i] = i;
  std::ranges::sort(edge_order_, [&](uint32_t a, uint32_t b) {
    return std::pair(batch.edges[a].expert, a) < std::pair(batch.edges[b].expert, b);
  });
  needs_.clear();
  for (size_t first = 0; first < edge_order_.size();) {
    const uint32_t expert = batch.edges[edge_order_[first]].expert;
    size_t last = first;
    while (last < edge_order_.size() && batch.edges[edge_order_[last]].expert == expert) ++last;
    needs_.push_back({.expert = expert,
                      .edges = std::span(edge_order_).subspan(first, last - first),
                      .layout = lay_out_image(checkpoint_.expert(batch.layer, expert), 0)});
    first = last;
  }
  next_to_read_ = 0;
}

Status LocalExpertStore::run(const ExpertBatch& batch, std::span<float> outputs,
                             const CancelToken& cancel) {
  group_edges(batch);
  counters_.edges += batch.edges.size();
  counters_.experts_used += needs_.size();
  Status status = run_needs(batch, outputs, cancel);
  if (!status) {
    abandon();
    ++counters_.failed_runs;
  }
  return status;
}

Status LocalExpertStore::run_needs(const ExpertBatch& batch, std::span<float> outputs,
                                   const CancelToken& cancel) {
  // Leasing all hits first keeps a miss of this batch from evicting an expert that it needs as
  // well.
  for (Need& need : needs_) {
    if (std::optional<ExpertCache::Slot> slot = cache_.lease(key(batch.layer, need.expert))) {
      need.slot = *slot;
      need.state = Need::State::Leased;
      ++counters_.hits;
    }
  }
  start_reads(batch.layer);
  TRY_STATUS(compute_leased(batch, outputs, cancel));
  while (std::optional<io::ReadCompletion> completion = channel_->wait()) {
    TRY_STATUS(cancel.check());
    // What else has arrived meanwhile is computed together with it.
    for (; completion; completion = channel_->poll())
      TRY_STATUS(take_completion(batch.layer, *completion));
    TRY_STATUS(compute_leased(batch, outputs, cancel));
  }
  for (const Need& need : needs_) CHECK(need.state == Need::State::Done);
  return {};
}

// Queues every miss for which there is a slot; the reader decides what is in flight.
void LocalExpertStore::start_reads(uint32_t layer) {
  std::vector<io::ReadRequest> requests;
  for (; next_to_read_ < needs_.size(); ++next_to_read_) {
    Need& need = needs_[next_to_read_];
    if (need.state != Need::State::Waiting) continue;
    const std::optional<ExpertCache::Slot> slot = cache_.start_read(key(layer, need.expert));
    if (!slot) break;
    need.slot = *slot;
    need.state = Need::State::Reading;
    ++counters_.misses;
    need.reads_outstanding = need.layout.extents.size();
    for (const FileExtent& extent : need.layout.extents)
      requests.push_back({.file = &checkpoint_.file(extent.file),
                          .offset = extent.offset,
                          .into = slot_bytes(*slot).subspan(extent.position, extent.size),
                          .tag = next_to_read_,
                          .surroundings_writable = true});  // image_layout keeps them free
  }
  if (!requests.empty()) channel_->submit(requests);
}

Status LocalExpertStore::take_completion(uint32_t layer, const io::ReadCompletion& completion) {
  Need& need = needs_[completion.tag];
  if (!completion.status) {
    return std::unexpected(Error(completion.status.error())
                               .within(fmt::format("layer {}: expert {}", layer, need.expert)));
  }
  if (--need.reads_outstanding > 0) return {};
  TRY_STATUS(check_scales(layer, need));
  cache_.read_done(need.slot);
  need.state = Need::State::Leased;
  for (const checkpoint::TensorLocation& part : checkpoint_.expert(layer, need.expert))
    counters_.bytes_read += part.size;
  return {};
}

// Computes every leased expert, some at a time: their slots may then hold the next misses.
Status LocalExpertStore::compute_leased(const ExpertBatch& batch, std::span<float> outputs,
                                        const CancelToken& cancel) {
  for (auto next = needs_.begin(); next != needs_.end();) {
    jobs_.clear();
    const auto first = next;
    for (; next != needs_.end() && jobs_.size() < kJobsAtOnce; ++next)
      if (next->state == Need::State::Leased)
        jobs_.push_back({weights_in(batch.layer, *next), next->edges});
    if (jobs_.empty()) continue;
    TRY_STATUS(compute_.run(jobs_, batch, outputs.data(), cancel));
    for (Need& need : std::span(first, next)) {
      if (need.state != Need::State::Leased) continue;
      cache_.release(need.slot);
      need.state = Need::State::Done;
    }
    start_reads(batch.layer);
  }
  return {};
}

// A scale of 255 would turn a row into NaN and every token after it into noise.
Status LocalExpertStore::check_scales(uint32_t layer, const Need& need) const {
  const checkpoint::ExpertLocation& location = checkpoint_.expert(layer, need.expert);
  for (const ExpertPart part : {ExpertPart::W1Scale, ExpertPart::W3Scale, ExpertPart::W2Scale}) {
    const checkpoint::TensorLocation& tensor = location[size_t(part)];
    if (tensor.size == 0) continue;
    const std::byte* scales =
        slot_bytes(need.slot).data() + need.layout.tensor_position[size_t(part)];
    const void* found = std::memchr(scales, kScaleNan, tensor.size);
    if (found == nullptr) continue;
    const uint64_t at = uint64_t(static_cast<const std::byte*>(found) - scales);
    return fail(
        ErrorCode::BadModel,
        fmt::format("layer {}: expert {}: {}: scale byte at offset {} is 255, which means not a "
                    "number; expected 0..254\n  the file is damaged: download this shard again",
                    layer, need.expert, checkpoint_.file(tensor.file).path(), tensor.offset + at));
  }
  return {};
}

ExpertWeights LocalExpertStore::weights_in(uint32_t layer, const Need& need) const {
  const ExpertContract& contract = *checkpoint_.contract().layers[layer].experts;
  const checkpoint::ExpertLocation& location = checkpoint_.expert(layer, need.expert);
  const std::byte* slot = slot_bytes(need.slot).data();
  const auto matrix = [&](ExpertPart weight, ExpertPart scale, size_t rows, size_t cols) {
    numerics::WeightMatrix result{
        .rows = rows, .cols = cols, .data = slot + need.layout.tensor_position[size_t(weight)]};
    if (contract.format == ExpertFormat::Mxfp4) {
      result.format = numerics::WeightFormat::Mxfp4;
      result.scales = slot + need.layout.tensor_position[size_t(scale)];
    } else {
      result.format = location[size_t(weight)].dtype == checkpoint::DType::F32
                          ? numerics::WeightFormat::F32
                          : numerics::WeightFormat::Bf16;
    }
    return result;
  };
  const size_t input = contract.input_dim, inner = contract.inner_dim;
  return {.gate = matrix(ExpertPart::W1, ExpertPart::W1Scale, inner, input),
          .up = matrix(ExpertPart::W3, ExpertPart::W3Scale, inner, input),
          .down = matrix(ExpertPart::W2, ExpertPart::W2Scale, input, inner)};
}

// Gives everything back after an error, so that the next run starts from a sound cache.
void LocalExpertStore::abandon() {
  channel_->cancel();
  for (Need& need : needs_) {
    if (need.state == Need::State::Reading) cache_.read_failed(need.slot);
    if (need.state == Need::State::Leased) cache_.release(need.slot);
  }
}

}  // namespace

Result<std::unique_ptr<ExpertStore>> make_local_expert_store(
    const checkpoint::Checkpoint& checkpoint, io::Reader& reader, ThreadTeam& team,
    const numerics::Kernels& kernels, const ExpertFunction& function,
    const LocalExpertStoreOptions& options) {
  const checkpoint::ModelContract& contract = checkpoint.contract();
  uint64_t slot_bytes = kExtentAlignment, expert_total = 0;
  size_t expert_stride = 0;
  for (uint32_t layer = 0; layer < contract.layers.size(); ++layer) {
    if (!contract.layers[layer].experts) continue;
    const uint32_t count = contract.layers[layer].experts->expert_count;
    expert_stride = std::max<size_t>(expert_stride, count);
    expert_total += count;
    for (uint32_t expert = 0; expert < count; ++expert)
      slot_bytes = std::max(slot_bytes, lay_out_image(checkpoint.expert(layer, expert), 0).bytes);
  }
  const uint64_t wanted = std::clamp<uint64_t>(options.cache_bytes / slot_bytes, kSlotsAtLeast,
                                               std::max<uint64_t>(expert_total, kSlotsAtLeast));
  TRY(io::Arena arena, io::Arena::map(wanted * slot_bytes));
  return std::make_unique<LocalExpertStore>(checkpoint, reader, team, kernels, function,
                                            std::move(arena), slot_bytes, uint32_t(wanted),
                                            expert_stride);
}

}  // namespace deltafin::memory
