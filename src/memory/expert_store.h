// The expert store: where routed experts are computed, and the one seam behind which their bytes
// may come from anywhere (a cache in memory, the disk; later a GPU or another machine).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "checkpoint/checkpoint.h"
#include "io/reader.h"
#include "numerics/kernels.h"

namespace deltafin::memory {

// Row `row` of the pass is to go through expert `expert`.
struct ExpertEdge {
  uint32_t row = 0;
  uint32_t expert = 0;
};

// What the routed experts of one layer are to do. Any order of edges; each (row, expert) at most
// once.
struct ExpertBatch {
  uint32_t layer = 0;
  std::span<const ExpertEdge> edges;
  const float* rows = nullptr;  // [row_count, input_dim]
  size_t row_count = 0;
};

// What an expert computes: down(act(gate x, up x)).
struct ExpertFunction {
  checkpoint::Activation activation = checkpoint::Activation::SwiGlu;
  float situ_beta = 1;
  std::optional<float> situ_linear_beta;

  // gate[i] <- act(gate[i], up[i])
  void activate(const numerics::Kernels& kernels, float* gate, const float* up, size_t n) const;
};

// Of one layer.
struct LayerExpertCounters {
  uint64_t hits = 0, misses = 0;  // as below
  uint64_t bytes_read = 0;
  std::chrono::nanoseconds wait{0};     // for reads, with nothing to compute
  std::chrono::nanoseconds compute{0};  // of experts
};

struct ExpertCounters {
  uint64_t experts_used = 0;  // distinct experts over all runs
  uint64_t edges = 0;         // rows through experts
  uint64_t hits = 0;          // experts that were in memory when they were needed
  uint64_t misses = 0;        // experts that were read
  uint64_t bytes_read = 0;    // of those reads, successful ones
  uint64_t failed_runs = 0;
  uint64_t hints = 0;             // experts whose reads were begun because of expect()
  uint64_t hints_used = 0;        // of those, needed while they were there or on their way
  uint64_t hint_bytes = 0;        // read because of expect(); misses do not count them
  uint64_t wasted_bytes = 0;      // of those, dropped before anybody needed them
  uint64_t cache_slots = 0;       // capacity, experts
  uint64_t cache_bytes = 0;       // capacity
  uint64_t given_back_bytes = 0;  // of that capacity, because memory was short
  std::vector<LayerExpertCounters> layers;
};

class ExpertStore {
 public:
  virtual ~ExpertStore() = default;

  // Computes one output row per edge: outputs[i, input_dim] belongs to batch.edges[i]. The result
  // does not depend on what is cached or on the order in which reads complete. Each needed expert
  // is read at most once. `meanwhile` (may be empty) is called once, on the calling thread, when
  // the reads are under way: for work that needs no expert. Errors: Io naming file and offset;
  // BadModel for a scale of 255 (NaN), naming file and offset; Cancelled, noticed between experts.
  // After an error the store is as usable as before.
  virtual Status run(const ExpertBatch& batch, std::span<float> outputs, const CancelToken& cancel,
                     const std::function<void()>& meanwhile) = 0;

  // Advice: these experts, the likeliest first, will probably be needed by the next run(), which is
  // of `layer`. Where the disk has nothing better to do they may be read; nothing else changes.
  virtual void expect(uint32_t layer, std::span<const uint32_t> experts) = 0;
  // Whether advice about `layer` can be of any use.
  virtual bool wants_hints(uint32_t layer) const = 0;

  // Memory is short: gives some of what experts take back to the system, for good, as far as runs
  // do without. Returns how much, in bytes. Not during a run.
  virtual uint64_t give_back() = 0;

  virtual ExpertCounters snapshot() const = 0;
};

// Which advice is followed. No bit depends on it.
enum class Hints : uint8_t {
  None,
  Proven,  // where advice like it was right often enough (memory/hint_trust.h)
  All,     // for tests
};

struct LocalExpertStoreOptions {
  // Memory for experts; raised to what one layer needs to make progress (two experts).
  uint64_t cache_bytes = 1ull << 30;
  Hints hints = Hints::Proven;
};

// Experts from the checkpoint's shards, read in place, kept in a bounded LRU cache. The references
// must outlive the store. Errors: OverBudget when the cache cannot be mapped.
Result<std::unique_ptr<ExpertStore>> make_local_expert_store(
    const checkpoint::Checkpoint& checkpoint, io::Reader& reader, ThreadTeam& team,
    const numerics::Kernels& kernels, const Clock& clock, const ExpertFunction& function,
    const LocalExpertStoreOptions& options);

}  // namespace deltafin::memory
