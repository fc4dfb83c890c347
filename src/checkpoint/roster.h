// Which tensor of a contract a name belongs to: the inverse of contract.h's tensor lists.
//
// Built from 2,455 names for K3; the 494,592 names of its routed experts are taken apart instead of
// listed, so that nothing here grows with the number of experts.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/contract.h"

namespace deltafin::checkpoint {

enum class PlaceKind : uint8_t {
  Global,      // contract.globals[index]
  Trunk,       // contract.layers[layer].trunk[index]
  Expert,      // tensor set `index` of layer `layer`: the tensor that starts with part `part`
  Ignored,     // outside the text model (vision tower, projector, prediction layers)
  Unexpected,  // inside the text model, but the contract has no such tensor
};

struct Place {
  PlaceKind kind = PlaceKind::Unexpected;
  uint32_t layer = 0;
  uint32_t index = 0;
  ExpertPart part = ExpertPart::Count;

  bool is_needed() const {
    return kind == PlaceKind::Global || kind == PlaceKind::Trunk || kind == PlaceKind::Expert;
  }
  std::optional<uint32_t> layer_if_any() const {
    if (kind != PlaceKind::Trunk && kind != PlaceKind::Expert) return std::nullopt;
    return layer;
  }
};

class Roster {
 public:
  // `contract` must outlive this and stay where it is.
  explicit Roster(const ModelContract& contract);

  Place find(std::string_view name) const;

  // What the tensor at `place` (a needed one) must be.
  bool is_u8(const Place& place) const;
  std::vector<std::vector<uint64_t>> shapes(const Place& place) const;

 private:
  std::optional<Place> find_expert(std::string_view name) const;

  const ModelContract& contract_;
  std::unordered_map<std::string_view, Place> named_;
  std::vector<std::vector<ExpertTensorSpec>> experts_;  // set 0 of each layer; all are alike
};

}  // namespace deltafin::checkpoint
