#include "checkpoint/roster.h"

#include <charconv>

#include "base/check.h"

namespace deltafin::checkpoint {
namespace {

bool take_literal(std::string_view& text, std::string_view literal) {
  if (!text.starts_with(literal)) return false;
  text.remove_prefix(literal.size());
  return true;
}

// A decimal number without leading zeros, below `limit`: there is one spelling of every name.
std::optional<uint32_t> take_number(std::string_view& text, uint64_t limit) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number >= limit) return std::nullopt;
  const size_t digits = static_cast<size_t>(end - text.data());
  if (digits > 1 && text.front() == '0') return std::nullopt;
  text.remove_prefix(digits);
  return number;
}

}  // namespace

Roster::Roster(const ModelContract& contract) : contract_(contract) {
  for (uint32_t i = 0; i < contract.globals.size(); ++i) {
    named_[contract.globals[i].name] = {.kind = PlaceKind::Global, .index = i};
  }
  experts_.resize(contract.layers.size());
  for (uint32_t layer = 0; layer < contract.layers.size(); ++layer) {
    const std::vector<TensorSpec>& trunk = contract.layers[layer].trunk;
    for (uint32_t i = 0; i < trunk.size(); ++i) {
      named_[trunk[i].name] = {.kind = PlaceKind::Trunk, .layer = layer, .index = i};
    }
    if (contract.layers[layer].experts) experts_[layer] = expert_tensors(contract, layer, 0);
  }
}

Place Roster::find(std::string_view name) const {
  if (!name.starts_with(contract_.names.scope)) return {.kind = PlaceKind::Ignored};
  for (const std::string& ignored : contract_.names.ignored)
    if (name.starts_with(ignored)) return {.kind = PlaceKind::Ignored};
  if (const std::optional<Place> expert = find_expert(name)) return *expert;
  const auto found = named_.find(name);
  return found != named_.end() ? found->second : Place{};
}

std::optional<Place> Roster::find_expert(std::string_view name) const {
  if (!take_literal(name, contract_.names.body) || !take_literal(name, kLayers))
    return std::nullopt;
  const std::optional<uint32_t> layer = take_number(name, contract_.layers.size());
  if (!layer || !take_literal(name, ".")) return std::nullopt;
  const std::optional<ExpertContract>& experts = contract_.layers[*layer].experts;
  if (!experts || !take_literal(name, experts_infix(*experts))) return std::nullopt;
  std::optional<uint32_t> set = 0;
  if (!is_fused(*experts)) set = take_number(name, experts->expert_count);
  if (!set) return std::nullopt;
  for (const ExpertTensorForm& form : expert_tensor_forms(*experts))
    if (name == form.suffix)
      return Place{.kind = PlaceKind::Expert, .layer = *layer, .index = *set, .part = form.part};
  return std::nullopt;
}

bool Roster::is_u8(const Place& place) const {
  return place.kind == PlaceKind::Expert &&
         contract_.layers[place.layer].experts->format == ExpertFormat::Mxfp4;
}

std::vector<std::vector<uint64_t>> Roster::shapes(const Place& place) const {
  CHECK(place.is_needed());
  if (place.kind == PlaceKind::Global) return contract_.globals[place.index].shapes;
  if (place.kind == PlaceKind::Trunk) {
    return contract_.layers[place.layer].trunk[place.index].shapes;
  }
  for (const ExpertTensorSpec& tensor : experts_[place.layer])
    if (tensor.part == place.part) return {tensor.shape};
  return {};
}

}  // namespace deltafin::checkpoint
