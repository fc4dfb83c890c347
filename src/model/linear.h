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

// out[i] = W rows[i]; out.width == W.rows.
struct Projection {
  const numerics::WeightMatrix& weights;
  Rows out;
};

// All projections of the same rows in one region of the team, for regions cost a decoding thread
// more than the smaller matrices do. Stops early once the context is cancelled.
void linear(Context& context, std::span<const Projection> projections, PackedRows& rows);
void linear(Context& context, const numerics::WeightMatrix& weights, PackedRows& rows, Rows out);

// What RMSNorm is applied with.
struct Norm {
  std::span<const float> weight;
  float epsilon = 0;
  numerics::NormWeight kind = numerics::NormWeight::Plain;
};

// out[i] = RMSNorm(rows[i]). out may be rows.
void rms_norm(Context& context, Rows rows, const Norm& norm, Rows out);

// out[i] = a[i] + b[i]. out may be a.
void add_rows(Context& context, Rows a, Rows b, Rows out);

}  // namespace deltafin::model
