// Rows through weight matrices, split over the team by output rows.
#pragma once

#include <array>

#include "model/model.h"

namespace deltafin::model {

// The input of one or more products: packs each row once for every weight format that asks.
class PackedRows {
 public:
  // `rows` must stay unchanged while this lives; packed copies come from the context's workspace.
  PackedRows(Context& context, Rows rows) : context_(context), rows_(rows) {}

  const Rows& rows() const { return rows_; }
  Rows packed(numerics::WeightFormat format);

 private:
  Context& context_;
  Rows rows_;
  std::array<Rows, 3> packed_{};
};

// out[i] = W rows[i]. out.width == W.rows. Stops early once the context is cancelled.
void linear(Context& context, const numerics::WeightMatrix& weights, PackedRows& rows, Rows out);

// Convenience: takes the output from the workspace.
Rows linear(Context& context, const numerics::WeightMatrix& weights, PackedRows& rows);
Rows linear(Context& context, const numerics::WeightMatrix& weights, Rows rows);

// out[i] = RMSNorm(rows[i]) with `weight`. out may be rows.
void rms_norm(Context& context, Rows rows, std::span<const float> weight, float epsilon, Rows out);

// out[i] = a[i] + b[i]. out may be a.
void add_rows(Context& context, Rows a, Rows b, Rows out);

}  // namespace deltafin::model
