// The canonical kernels: one table of functions per instruction set, all returning the same bits.
//
// docs/numerics.md defines the order of every rounding; src/numerics/definition/ has each operation
// as one plain C++ function, which is the definition. A table is those same functions compiled for
// one instruction set, except where src/numerics/vector/ is faster.
//
// All arrays are f32 unless a comment says otherwise. Outputs may not overlap inputs unless a
// comment allows it. No kernel allocates, fails or keeps state. NaN and infinity propagate as IEEE
// 754 says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "numerics/weights.h"

namespace deltafin::numerics {

// The version of canonical arithmetic that all kernels compute: docs/numerics.md.
inline constexpr std::string_view kArithmetic = "canon-1";

enum class Elementary : uint8_t { Exp, Log, Log1p, Sigmoid, Silu, Softplus, Tanh };

// What RMSNorm multiplies with after the division by the root mean square.
enum class NormWeight : uint8_t {
  Plain,        // (x r) w
  ZeroCentred,  // (x r) (1 + w)
};

// One value block of the delta rule for one head, over several tokens in order.
//
//   S   <- diag(decay) S                      forget, per key channel
//   err  = v - k^T S                          what the memory gets wrong about k
//   S   <- S + k (beta err)^T                 write
//   out  = q^T S                              read
//
// Shapes  state_in, state_out [key_dim, state_stride]; only columns [0, value_count) are touched.
//         q, k [tokens, key_stride], decay [tokens, decay_stride] of key_dim entries (decay_step 1)
//         or one (decay_step 0), v [tokens, value_stride], out [tokens, out_stride], beta [tokens,
//         beta_stride]
// Units   decay = exp(log decay) in (0, 1]; beta in [0, 1]; q already scaled, q and k normalised
// Alias   state_in may equal state_out
// Scratch [key_dim, value_count]
// Source  flash-linear-attention, fla/ops/kda/naive.py
struct DeltaRuleBlock {
  const float* state_in = nullptr;
  float* state_out = nullptr;
  size_t state_stride = 0;
  size_t key_dim = 0;
  size_t value_count = 0;  // at most kDeltaRuleValueBlock
  size_t token_count = 0;
  const float* q = nullptr;  // null: only the state is advanced (replay), out is not written
  const float* k = nullptr;
  size_t key_stride = 0;
  const float* decay = nullptr;
  size_t decay_stride = 0;
  size_t decay_step = 1;
  const float* v = nullptr;
  size_t value_stride = 0;
  float* out = nullptr;
  size_t out_stride = 0;
  const float* beta = nullptr;
  size_t beta_stride = 0;
  float* scratch = nullptr;
};
// At most so many value channels a block: all of a head for one token, whose state is then read in
// one piece. With many tokens half of them, so that the block stays in the first-level cache.
inline constexpr size_t kDeltaRuleValueBlock = 128;

// Scores, maximum, weights and weighted sum of queries that share keys and values (rows of a pass,
// heads of a group), over at most 512 cached positions.
struct AttentionChunk {
  const float* queries = nullptr;  // [query_count, query_stride]
  size_t query_stride = 0;
  size_t query_count = 0;
  // [query_count] positions each query sees, 1 .. kAttentionChunk, never fewer than the query
  // before
  const size_t* position_counts = nullptr;
  const float* keys = nullptr;  // [positions, key_stride]
  size_t key_stride = 0;
  size_t key_dim = 0;
  const float* values = nullptr;  // [positions, value_stride]
  size_t value_stride = 0;
  size_t value_dim = 0;
  float scale = 1;
};
// Chunks are cut at absolute positions 0, 512, 1024, ... so the fold does not depend on the pass.
inline constexpr size_t kAttentionChunk = 512;

// Running results of attention over chunks, one per query: softmax(s) V = sum / total after the
// last fold.
struct AttentionPartials {
  float* maxima = nullptr;  // [query]
  float* totals = nullptr;  // [query]
  float* sums = nullptr;    // [query, sum_stride], value_dim of each used
  size_t sum_stride = 0;

  // Those of the queries from `first` on.
  AttentionPartials from(size_t first) const {
    return {maxima + first, totals + first, sums + first * sum_stride, sum_stride};
  }
};

struct Kernels {
  const char* name = "";  // "baseline", "avx2", "avx512", "neon"

  // --- products -------------------------------------------------------------------------------
  // Brings one activation column x[cols] into the order in which `format` consumes it. packed has
  // packed_size(cols) floats. A pure permutation: the bits of a product do not depend on it.
  void (*pack_column)(WeightFormat format, const float* x, size_t cols, float* packed);
  // y[c * y_stride + r] = dot(W[r, :], x_c) for every row of `weights` and every column c.
  // packed [column_count, packed_stride], each column from pack_column with the same format.
  void (*product)(const WeightMatrix& weights, const float* packed, size_t packed_stride,
                  size_t column_count, float* y, size_t y_stride);
  // out[i, c] = fma chain over rows r rising from +0 of coefficients[i, r] * W[r, c]: W^T applied
  // to each of `count` rows of coefficients, used by absorbed MLA. F32 and Bf16 only. out [count,
  // cols].
  void (*product_transposed)(const WeightMatrix& weights, const float* coefficients,
                             size_t coefficient_stride, size_t count, float* out,
                             size_t out_stride);
  float (*dot)(const float* a, const float* b, size_t n);
  float (*sum)(const float* x, size_t n);  // sixteen lanes by index

  // --- elementwise ----------------------------------------------------------------------------
  void (*elementary)(Elementary function, const float* x, float* y, size_t n);  // y may be x
  void (*add)(const float* a, const float* b, float* y, size_t n);              // y may be a or b
  void (*multiply_add)(float a, const float* x, float* y,
                       size_t n);  // y = y + a * x, two roundings
  void (*swiglu)(const float* gate, const float* up, float* y, size_t n);  // y may be gate
  // linear_beta null: the up factor is used as it is. y may be gate.
  void (*situ_glu)(const float* gate, const float* up, float beta, const float* linear_beta,
                   float* y, size_t n);
  void (*sigmoid_gate)(const float* x, const float* gate, float* y,
                       size_t n);  // y = x sigmoid(gate)

  // --- norms ----------------------------------------------------------------------------------
  void (*rms_norm)(const float* x, const float* weight, NormWeight kind, float epsilon, float* y,
                   size_t n);  // y may be x
  // ((x r) w) gate, the gate already through its activation. y may be x.
  void (*rms_norm_gated)(const float* x, const float* weight, float epsilon, const float* gate,
                         float* y, size_t n);
  void (*l2_norm)(const float* x, float scale, float* y, size_t n);  // epsilon 1e-6; y may be x
  void (*softmax)(const float* x, float* y, size_t n);               // n >= 1; y may be x
  // Softmax over the scores of entries[0..count), oldest first; out = weighted sum of the raw
  // entries. score_weight = norm weight * projection. probabilities [count] is an output.
  void (*attention_residual)(const float* const* entries, size_t count, const float* score_weight,
                             float epsilon, float* probabilities, float* out, size_t n);

  // --- recurrent layers -----------------------------------------------------------------------
  // out[c] = SiLU(fma chain over taps j rising from +0 of taps[c, j] * rows[j][c]); the last tap
  // multiplies the newest row.
  void (*short_convolution)(const float* const* rows, const float* taps, size_t tap_count,
                            float* out, size_t channels);
  // decay = exp(g): g = lower_bound * sigmoid(a (z + bias)) or, with lower_bound null,
  // g = -(a * softplus(z + bias)). One head; decay may be z.
  void (*kda_decay)(const float* z, const float* bias, float a, const float* lower_bound,
                    float* decay, size_t n);
  void (*delta_rule)(const DeltaRuleBlock& block);

  // --- attention ------------------------------------------------------------------------------
  // scores [query_count, kAttentionChunk] is scratch.
  void (*attention_chunk)(const AttentionChunk& chunk, float* scores, const AttentionPartials& out);
  // running <- running folded with next, one rescale each.
  void (*attention_fold)(const AttentionPartials& running, const AttentionPartials& next,
                         size_t query_count, size_t value_dim);
  // out [query_count, out_stride]
  void (*attention_finish)(const AttentionPartials& running, size_t query_count, size_t value_dim,
                           float* out, size_t out_stride);

  // Rotary embedding in the split-half layout: pairs (x[i], x[i + n/2]). sines, cosines [n/2]. y
  // may be x.
  void (*rotate)(const float* x, const float* sines, const float* cosines, float* y, size_t n);
};

// Floats to keep for what pack_column writes. The columns of a product lie this far apart: an odd
// number of 64-byte lines, because at the usual widths, multiples of 1024, they would otherwise
// meet in the same sets of the cache.
inline size_t packed_size(size_t cols) { return (cols + 127) / 128 * 128 + 16; }

// The tables this processor can run; [0] is the baseline.
std::span<const Kernels> kernel_variants();

// The fastest of them, or the one forced by `name`; null when there is no such variant here.
const Kernels* find_kernels(std::string_view name);
const Kernels& best_kernels();

}  // namespace deltafin::numerics
