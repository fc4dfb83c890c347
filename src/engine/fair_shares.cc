#include "engine/fair_shares.h"

namespace deltafin::engine {

std::vector<size_t> share_rows(std::span<const size_t> wanted, size_t rows) {
  std::vector<size_t> shares(wanted.size(), 0);
  if (wanted.empty()) return shares;
  const bool first_needs_all = wanted[0] > rows;
  size_t left = first_needs_all ? rows / 2 : rows;
  for (size_t i = first_needs_all ? 1 : 0; i < wanted.size(); ++i) {
    if (first_needs_all && wanted[i] > left) continue;
    shares[i] = std::min(wanted[i], left);
    left -= shares[i];
  }
  if (first_needs_all) shares[0] = rows - rows / 2 + left;
  return shares;
}

}  // namespace deltafin::engine
