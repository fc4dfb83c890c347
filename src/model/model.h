// A model as the engine sees it: embed, one layer at a time, logits. One implementation per family.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "base/token.h"
#include "memory/expert_store.h"
#include "memory/trunk.h"
#include "model/rows.h"
#include "numerics/kernels.h"
#include "numerics/router.h"
#include "state/sequence_state.h"

namespace deltafin::model {

// The rows of one sequence in a pass: [first_row, first_row + transaction->row_count()).
struct Segment {
  state::Transaction* transaction = nullptr;
  size_t first_row = 0;

  size_t row_count() const { return transaction->row_count(); }
};

// Sees what a pass computes, for traces and tests. May not change anything. Rows are those of the
// pass.
class Observer {
 public:
  virtual ~Observer() = default;
  // top_k routes per row, in router order.
  virtual void on_routes(size_t /*layer*/, std::span<const numerics::Route> /*routes*/) {}
  virtual void on_mixer_output(size_t /*layer*/, Rows /*rows*/) {}
  virtual void on_ffn_output(size_t /*layer*/, Rows /*rows*/) {}
  // The residual stream after the layer (K3: the running vector since the last restart).
  virtual void on_layer_output(size_t /*layer*/, Rows /*rows*/) {}
  virtual void on_final_norm(Rows /*rows*/) {}
};

// What a layer works with. The references outlive the pass.
struct Context {
  ThreadTeam& team;
  const numerics::Kernels& kernels;
  memory::Trunk& trunk;
  memory::ExpertStore& experts;
  Workspace& workspace;
  // Work may stop in the middle once this is set; the activations are then garbage and the pass is
  // dropped. So whoever acts on values (an error, a choice) looks at the token first.
  const CancelToken& cancel;
  Observer* observer = nullptr;  // may be null
};

// The activations of a pass between two layers.
struct Activations {
  OwnedRows residual;             // [rows, hidden]
  std::vector<OwnedRows> blocks;  // AttnRes: earlier vectors, oldest first
};

// Of the running vector, and of what a layer holds beside its own scratch, in hidden sizes.
inline constexpr uint64_t kVectorsOfARow = 6;

class Model {
 public:
  virtual ~Model() = default;

  virtual size_t layer_count() const = 0;
  virtual size_t vocab_size() const = 0;
  // Outlives every sequence made from it.
  virtual const state::Layout& state_layout() const = 0;
  // Upper bound of the memory that one more row of a prefill pass needs.
  virtual uint64_t activation_bytes_per_row() const = 0;

  // Token ids are in [0, vocab_size). Errors: those of the trunk.
  virtual Result<Activations> embed(Context& context, std::span<const TokenId> tokens) const = 0;

  // Errors: those of the expert store and the trunk; BadModel for a non-finite router score;
  // Cancelled. After an error the pass is to be dropped.
  virtual Status forward_layer(Context& context, size_t layer, std::span<const Segment> segments,
                               Activations& activations) const = 0;

  // logits[i] of row rows[i]. logits.width == vocab_size. Errors: BadModel for a non-finite logit;
  // Cancelled.
  virtual Status logits(Context& context, const Activations& activations,
                        std::span<const uint32_t> rows, Rows logits) const = 0;

  // Rewrites the transaction's recurrent state for its first `accepted` rows, 0 < accepted <
  // row_count, from the inputs that a verify pass kept.
  virtual void replay(Context& context, state::Transaction& transaction, size_t accepted) const = 0;
};

}  // namespace deltafin::model
