#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "io/arena.h"
#include "memory/expert_cache.h"
#include "memory/expert_compute.h"
#include "memory/expert_image.h"
#include "memory/expert_store.h"
#include "memory/hint_reads.h"
#include "memory/hint_trust.h"
#include "memory/image_layout.h"
#include "memory/plan.h"

namespace deltafin::memory {

namespace {

// Experts computed before their slots are given back: decode's all, so that they share the team's
// regions, and in prefill few enough that reads go on meanwhile.
constexpr size_t kJobsAtOnce = 16;

// Expected experts on their way at once: each holds a slot.
constexpr size_t kHintReadsAtMost = 32;

// Memory that is made real at once when the slots so far are all in use.
constexpr uint64_t kTouchBytes = 64ull << 20;

// When memory is short, one part in so many goes.
constexpr uint32_t kGivenBackShare = 8;

struct CacheShape {
  uint64_t slot_bytes = kExtentAlignment;
  uint32_t slot_count = 0;
  uint64_t expert_total = 0;
  size_t expert_stride = 1;  // of a layer in the keys of the cache
};

class LocalExpertStore final : public ExpertStore {
 public:
  LocalExpertStore(const checkpoint::Checkpoint& checkpoint, io::Reader& reader, ThreadTeam& team,
                   const numerics::Kernels& kernels, const Clock& clock,
                   const ExpertFunction& function, Hints hints, io::Arena arena,
                   const CacheShape& shape)
      : checkpoint_(checkpoint),
        team_(team),
        clock_(clock),
        compute_(team, kernels, function),
        hints_(shape.slot_count < shape.expert_total ? hints : Hints::None),
        arena_(std::move(arena)),
        channel_(reader.open_channel(io::ReadPriority::Demand)),
        hint_reads_(reader),
        slot_bytes_(shape.slot_bytes),
        expert_stride_(shape.expert_stride),
        cache_(shape.slot_count, shape.expert_stride * checkpoint.contract().layers.size()),
        unused_hint_bytes_(shape.slot_count),
        slots_in_use_(shape.slot_count) {
    counters_.cache_slots = shape.slot_count;
    counters_.cache_bytes = shape.slot_count * shape.slot_bytes;
    counters_.layers.resize(checkpoint.contract().layers.size());
  }

  Status run(const ExpertBatch& batch, std::span<float> outputs, const CancelToken& cancel,
             const std::function<void()>& meanwhile) override;
  void expect(uint32_t layer, std::span<const uint32_t> experts) override;
  bool wants_hints(uint32_t layer) const override {
    return hints_ != Hints::None && checkpoint_.contract().layers[layer].experts.has_value();
  }
  uint64_t give_back() override;
  ExpertCounters snapshot() const override { return counters_; }

 private:
  // One expert of the batch and the edges that want it.
  struct Need {
    uint32_t expert = 0;
    std::span<const uint32_t> edges;
    ImageLayout layout;
    ExpertCache::Slot slot = 0;
    size_t reads_outstanding = 0;
    // Hinted: on its way since before it was needed.
    enum class State : uint8_t { Waiting, Reading, Hinted, Leased, Done } state = State::Waiting;
  };

  size_t key(uint32_t layer, uint32_t expert) const { return layer * expert_stride_ + expert; }
  std::span<std::byte> slot_bytes(ExpertCache::Slot slot) const {
    return arena_.bytes().subspan(slot * slot_bytes_, slot_bytes_);
  }

  void group_edges(const ExpertBatch& batch);
  Need* find_need(uint32_t layer, size_t key);
  Status run_needs(const ExpertBatch& batch, std::span<float> outputs, const CancelToken& cancel,
                   const std::function<void()>& meanwhile);
  void lease_hits(uint32_t layer);
  void prepare_slot(ExpertCache::Slot slot);
  void append_reads(const ImageLayout& layout, ExpertCache::Slot slot, uint64_t tag,
                    std::vector<io::ReadRequest>& requests) const;
  void start_reads(uint32_t layer);
  Status take_completions(uint32_t layer);
  Status wait_for_completions(uint32_t layer);
  Status take_completion(uint32_t layer, const io::ReadCompletion& completion);
  void take_hints(uint32_t layer);
  void judge_advice(uint32_t layer);
  void claim_hints(uint32_t layer);
  void follow_hints();
  Status compute_leased(const ExpertBatch& batch, std::span<float> outputs,
                        const CancelToken& cancel);
  void abandon();

  const checkpoint::Checkpoint& checkpoint_;
  ThreadTeam& team_;
  const Clock& clock_;
  ExpertCompute compute_;
  const Hints hints_;
  io::Arena arena_;  // outlives the channels that read into it
  std::unique_ptr<io::ReadChannel> channel_;
  HintReads hint_reads_;
  uint64_t slot_bytes_;
  size_t expert_stride_;
  ExpertCache cache_;
  std::vector<uint64_t> unused_hint_bytes_;  // of each slot: read ahead, and nobody has needed it
  uint32_t last_layer_ = 0;                  // that was run
  uint32_t slots_in_use_;                    // others were given back
  uint32_t touched_slots_ = 0;               // the first so many have real memory
  ExpertCounters counters_;

  // Of the run in progress.
  std::vector<Need> needs_;  // in the order of experts
  std::vector<uint32_t> edge_order_;
  std::vector<ExpertJob> jobs_;
  size_t next_to_read_ = 0;

  // Advice for the next run, the likeliest first, and what of it is to be read yet, likeliest last.
  struct Advice {
    uint32_t expert = 0;
    bool was_missing = false;
  };
  uint32_t hinted_layer_ = 0;
  std::vector<Advice> advice_;
  std::vector<uint32_t> hinted_experts_;
  HintTrust trust_;
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

LocalExpertStore::Need* LocalExpertStore::find_need(uint32_t layer, size_t key) {
  if (key / expert_stride_ != layer) return nullptr;
  const uint32_t expert = uint32_t(key % expert_stride_);
  const auto need = std::ranges::lower_bound(needs_, expert, {}, &Need::expert);
  return need != needs_.end() && need->expert == expert ? &*need : nullptr;
}

Status LocalExpertStore::run(const ExpertBatch& batch, std::span<float> outputs,
                             const CancelToken& cancel, const std::function<void()>& meanwhile) {
  group_edges(batch);
  counters_.edges += batch.edges.size();
  counters_.experts_used += needs_.size();
  Status status = run_needs(batch, outputs, cancel, meanwhile);
  if (!status) {
    abandon();
    ++counters_.failed_runs;
  }
  return status;
}

Status LocalExpertStore::run_needs(const ExpertBatch& batch, std::span<float> outputs,
                                   const CancelToken& cancel,
                                   const std::function<void()>& meanwhile) {
  hinted_experts_.clear();
  if (batch.layer <= last_layer_) cache_.begin_pass();
  last_layer_ = batch.layer;
  judge_advice(batch.layer);
  claim_hints(batch.layer);
  // Behind it, as the slots of what was withdrawn before it had begun are free at once.
  take_hints(batch.layer);
  lease_hits(batch.layer);
  start_reads(batch.layer);
  if (meanwhile) meanwhile();
  const auto is_done = [](const Need& need) { return need.state == Need::State::Done; };
  while (true) {
    TRY_STATUS(take_completions(batch.layer));
    TRY_STATUS(compute_leased(batch, outputs, cancel));
    if (std::ranges::all_of(needs_, is_done)) break;
    TRY_STATUS(cancel.check());
    TRY_STATUS(wait_for_completions(batch.layer));
  }
  follow_hints();  // slots are free now
  return {};
}

// Leasing all hits first keeps a miss of this batch from evicting an expert that it needs as well.
void LocalExpertStore::lease_hits(uint32_t layer) {
  for (Need& need : needs_) {
    if (need.state != Need::State::Waiting) continue;
    const std::optional<ExpertCache::Slot> slot = cache_.lease(key(layer, need.expert));
    if (!slot) continue;
    need.slot = *slot;
    need.state = Need::State::Leased;
    if (std::exchange(unused_hint_bytes_[*slot], 0) > 0) ++counters_.hints_used;
    ++counters_.hits;
    ++counters_.layers[layer].hits;
  }
}

// Before a read into a slot: there is real memory behind it.
void LocalExpertStore::prepare_slot(ExpertCache::Slot slot) {
  counters_.wasted_bytes += std::exchange(unused_hint_bytes_[slot], 0);
  if (slot < touched_slots_) return;
  // Some more at once, for the team to share.
  const uint64_t some = std::max<uint64_t>(1, kTouchBytes / slot_bytes_);
  const uint64_t end = std::min<uint64_t>(slot + some, cache_.slot_count());
  const uint64_t first = touched_slots_ * slot_bytes_;
  io::touch(arena_.bytes().subspan(first, end * slot_bytes_ - first), team_);
  touched_slots_ = uint32_t(end);
}

void LocalExpertStore::append_reads(const ImageLayout& layout, ExpertCache::Slot slot, uint64_t tag,
                                    std::vector<io::ReadRequest>& requests) const {
  for (const FileExtent& extent : layout.extents)
    requests.push_back({.file = &checkpoint_.file(extent.file),
                        .offset = extent.offset,
                        .into = slot_bytes(slot).subspan(extent.position, extent.size),
                        .tag = tag,
                        .surroundings_writable = true});  // image_layout keeps them free
}

// Queues every miss for which there is a slot; the reader decides what is in flight.
void LocalExpertStore::start_reads(uint32_t layer) {
  std::vector<io::ReadRequest> requests;
  for (; next_to_read_ < needs_.size(); ++next_to_read_) {
    Need& need = needs_[next_to_read_];
    if (need.state != Need::State::Waiting) continue;
    const std::optional<ExpertCache::Slot> slot = cache_.start_read(key(layer, need.expert));
    if (!slot) break;
    if (*slot >= touched_slots_ && !requests.empty()) {
      // Memory is made real while the disk works.
      channel_->submit(requests);
      requests.clear();
    }
    prepare_slot(*slot);
    need.slot = *slot;
    need.state = Need::State::Reading;
    ++counters_.misses;
    ++counters_.layers[layer].misses;
    need.reads_outstanding = need.layout.extents.size();
    append_reads(need.layout, *slot, next_to_read_, requests);
  }
  if (!requests.empty()) channel_->submit(requests);
}

// Whatever has come; and begins what there are slots for now.
Status LocalExpertStore::take_completions(uint32_t layer) {
  while (const std::optional<io::ReadCompletion> completion = channel_->poll())
    TRY_STATUS(take_completion(layer, *completion));
  take_hints(layer);
  start_reads(layer);
  return {};
}

// At least one, unless what was waited for turned out to be advice that failed, or was withdrawn
// and held a slot.
Status LocalExpertStore::wait_for_completions(uint32_t layer) {
  const std::chrono::nanoseconds start = clock_.now();
  const std::optional<io::ReadCompletion> completion = channel_->wait();
  if (!completion) hint_reads_.wait();
  counters_.layers[layer].wait += clock_.now() - start;
  return completion ? take_completion(layer, *completion) : Status();
}

Status LocalExpertStore::take_completion(uint32_t layer, const io::ReadCompletion& completion) {
  Need& need = needs_[completion.tag];
  if (!completion.status) {
    return std::unexpected(Error(completion.status.error())
                               .within(fmt::format("layer {}: expert {}", layer, need.expert)));
  }
  if (--need.reads_outstanding > 0) return {};
  TRY_STATUS(check_scales(checkpoint_, layer, need.expert, need.layout, slot_bytes(need.slot)));
  cache_.read_done(need.slot);
  need.state = Need::State::Leased;
  for (const checkpoint::TensorLocation& part : checkpoint_.expert(layer, need.expert)) {
    counters_.bytes_read += part.size;
    counters_.layers[layer].bytes_read += part.size;
  }
  return {};
}

// Expected experts that have come, for the run of `layer` or before anybody needs them.
void LocalExpertStore::take_hints(uint32_t layer) {
  for (const HintReads::Read& read : hint_reads_.take_completed()) {
    Need* need = find_need(layer, read.key);
    if (need != nullptr && need->state != Need::State::Hinted) need = nullptr;
    const uint32_t from = uint32_t(read.key / expert_stride_);
    const uint32_t expert = uint32_t(read.key % expert_stride_);
    const bool is_sound =
        read.status &&
        check_scales(checkpoint_, from, expert, lay_out_image(checkpoint_.expert(from, expert), 0),
                     slot_bytes(read.slot));
    if (!is_sound) {
      // It was advice. Whoever needs the expert reads it again and says what is wrong.
      cache_.read_failed(read.slot);
      if (need == nullptr) continue;
      need->state = Need::State::Waiting;
      next_to_read_ = std::min(next_to_read_, size_t(need - needs_.data()));
      continue;
    }
    counters_.hint_bytes += read.bytes;
    cache_.read_done(read.slot);
    if (need != nullptr) {
      need->state = Need::State::Leased;
      ++counters_.hints_used;
      ++counters_.hits;
      ++counters_.layers[layer].hits;
    } else {
      cache_.release_unused(read.slot);
      unused_hint_bytes_[read.slot] = read.bytes;
    }
  }
}

// What was there anyhow teaches nothing of what would be read.
void LocalExpertStore::judge_advice(uint32_t layer) {
  for (size_t i = 0; layer == hinted_layer_ && i < advice_.size(); ++i) {
    if (!advice_[i].was_missing) continue;
    const bool was_right = find_need(layer, key(layer, advice_[i].expert)) != nullptr;
    trust_.judge(i, advice_.size(), was_right);
  }
  advice_.clear();
}

// Of what is still under way, this run takes what it needs and withdraws the rest, without waiting
// for it: its own reads are to begin now.
void LocalExpertStore::claim_hints(uint32_t layer) {
  for (HintReads::Read& read : hint_reads_.under_way()) {
    Need* need = find_need(layer, read.key);
    if (need != nullptr) {
      need->slot = read.slot;
      need->state = Need::State::Hinted;
    } else {
      hint_reads_.withdraw(read);
    }
  }
}

void LocalExpertStore::expect(uint32_t layer, std::span<const uint32_t> experts) {
  if (!wants_hints(layer)) return;
  hinted_layer_ = layer;
  advice_.clear();
  hinted_experts_.clear();
  for (size_t i = 0; i < experts.size(); ++i) {
    advice_.push_back({experts[i], !cache_.knows(key(layer, experts[i]))});
    const bool is_followed = hints_ == Hints::All || trust_.is_proven(i, experts.size());
    if (advice_[i].was_missing && is_followed) hinted_experts_.push_back(experts[i]);
  }
  std::ranges::reverse(hinted_experts_);
  follow_hints();
}

// As far as there are slots that nobody holds.
void LocalExpertStore::follow_hints() {
  std::vector<io::ReadRequest> requests;
  for (; !hinted_experts_.empty(); hinted_experts_.pop_back()) {
    const uint32_t expert = hinted_experts_.back();
    const size_t wanted = key(hinted_layer_, expert);
    if (cache_.knows(wanted)) continue;
    if (hint_reads_.under_way().size() >= kHintReadsAtMost) return;
    const std::optional<ExpertCache::Slot> slot = cache_.start_read(wanted);
    if (!slot) return;
    prepare_slot(*slot);
    requests.clear();
    append_reads(lay_out_image(checkpoint_.expert(hinted_layer_, expert), 0), *slot, 0, requests);
    hint_reads_.start(wanted, *slot, requests);
    ++counters_.hints;
  }
}

// An eighth of what there is, but never the last slots that a token's experts need.
uint64_t LocalExpertStore::give_back() {
  uint32_t least = uint32_t(kSlotsAtLeast);
  least = std::max(least, checkpoint_.contract().experts_per_token());
  uint64_t bytes = 0;
  for (uint64_t count = slots_in_use_ / kGivenBackShare + 1; count > 0; --count) {
    if (slots_in_use_ <= least) break;
    const std::optional<ExpertCache::Slot> slot = cache_.retire();
    if (!slot) break;
    counters_.wasted_bytes += std::exchange(unused_hint_bytes_[*slot], 0);
    io::give_back(slot_bytes(*slot));
    --slots_in_use_;
    bytes += slot_bytes_;
  }
  counters_.given_back_bytes += bytes;
  return bytes;
}

// Computes every leased expert, some at a time: their slots may then hold the next misses.
Status LocalExpertStore::compute_leased(const ExpertBatch& batch, std::span<float> outputs,
                                        const CancelToken& cancel) {
  for (auto next = needs_.begin(); next != needs_.end();) {
    jobs_.clear();
    const auto first = next;
    for (; next != needs_.end() && jobs_.size() < kJobsAtOnce; ++next)
      if (next->state == Need::State::Leased)
        jobs_.push_back({weights_in(checkpoint_, batch.layer, next->expert, next->layout,
                                    slot_bytes(next->slot)),
                         next->edges});
    if (jobs_.empty()) continue;
    const std::chrono::nanoseconds start = clock_.now();
    TRY_STATUS(compute_.run(jobs_, batch, outputs.data(), cancel));
    counters_.layers[batch.layer].compute += clock_.now() - start;
    for (Need& need : std::span(first, next)) {
      if (need.state != Need::State::Leased) continue;
      cache_.release(need.slot);
      need.state = Need::State::Done;
    }
    start_reads(batch.layer);
  }
  return {};
}

// Gives everything back after an error, so that the next run starts from a sound cache.
void LocalExpertStore::abandon() {
  channel_->cancel();
  for (HintReads::Read& read : hint_reads_.under_way()) hint_reads_.withdraw(read);
  for (Need& need : needs_) {
    if (need.state == Need::State::Reading) cache_.read_failed(need.slot);
    if (need.state == Need::State::Leased) cache_.release(need.slot);
  }
}

}  // namespace

Result<std::unique_ptr<ExpertStore>> make_local_expert_store(
    const checkpoint::Checkpoint& checkpoint, io::Reader& reader, ThreadTeam& team,
    const numerics::Kernels& kernels, const Clock& clock, const ExpertFunction& function,
    const LocalExpertStoreOptions& options) {
  const checkpoint::ModelContract& contract = checkpoint.contract();
  CacheShape shape;
  for (uint32_t layer = 0; layer < contract.layers.size(); ++layer) {
    if (!contract.layers[layer].experts) continue;
    const uint32_t count = contract.layers[layer].experts->expert_count;
    shape.expert_stride = std::max<size_t>(shape.expert_stride, count);
    shape.expert_total += count;
    for (uint32_t expert = 0; expert < count; ++expert)
      shape.slot_bytes =
          std::max(shape.slot_bytes, lay_out_image(checkpoint.expert(layer, expert), 0).bytes);
  }
  shape.slot_count =
      uint32_t(std::clamp<uint64_t>(options.cache_bytes / shape.slot_bytes, kSlotsAtLeast,
                                    std::max<uint64_t>(shape.expert_total, kSlotsAtLeast)));
  TRY(io::Arena arena, io::Arena::map(shape.slot_count * shape.slot_bytes));
  return std::make_unique<LocalExpertStore>(checkpoint, reader, team, kernels, clock, function,
                                            options.hints, std::move(arena), shape);
}

}  // namespace deltafin::memory
