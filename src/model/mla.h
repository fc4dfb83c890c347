// Multi-head latent attention in its absorbed form: one cached row of latent | extra per position,
// shared by all heads. No rotary embedding in this family.
#pragma once

#include "checkpoint/contract.h"
#include "model/linear.h"

namespace deltafin::model {

// The released modelling code builds the two low-rank norms without an epsilon argument, so they
// use the class default and not the model's rms_norm_eps of 1e-5. Confirmed by running that code in
// float64.
inline constexpr float kLowRankNormEpsilon = 1e-6f;

state::PagedLayout mla_state_layout(const checkpoint::KimiConfig& config);

// out[i] = MLA(rows[i]); rows are normed layer inputs, out.width == hidden size. Appends one cache
// row per row of every segment.
void mla(Context& context, const checkpoint::KimiConfig& config,
         const memory::LayerWeights& weights, size_t layer, std::span<const Segment> segments,
         Rows rows, Rows out);

uint64_t mla_workspace_per_row(const checkpoint::KimiConfig& config);

}  // namespace deltafin::model
