#include "checkpoint/tensor_map.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deltafin::checkpoint {
namespace {

// A location of size 0 is a tensor that has not been found; this file number says that we know why.
constexpr uint32_t kLost = UINT32_MAX;

bool is_found(const TensorLocation& location) { return location.size != 0; }

bool is_missing(const TensorLocation& location) {
  return !is_found(location) && location.file != kLost;
}

bool dtype_fits(DType dtype, bool is_u8) {
  return is_u8 ? dtype == DType::U8 : dtype == DType::F32 || dtype == DType::BF16;
}

// Optional tensors count in bytes only: nothing lacks without them.
void count_found(const std::vector<TensorSpec>& specs, const std::vector<TensorLocation>& locations,
                 TensorMap::Found& found) {
  for (size_t i = 0; i < specs.size(); ++i) {
    found.count += is_found(locations[i]) && !specs[i].optional ? 1 : 0;
    found.bytes += locations[i].size;
  }
}

void note_missing(const TensorSpec& spec, const TensorLocation& location, size_t limit,
                  TensorMap::Missing& missing) {
  if (!is_missing(location) || spec.optional) return;
  ++missing.count;
  if (missing.names.size() < limit) missing.names.push_back(spec.name);
}

}  // namespace

TensorMap::TensorMap(const ModelContract& contract) : contract_(contract), roster_(contract) {
  tables_.globals.resize(contract.globals.size());
  for (const LayerContract& layer : contract.layers) {
    tables_.trunk.emplace_back(layer.trunk.size());
    tables_.experts.emplace_back(layer.experts ? layer.experts->expert_count : 0);
  }
}

void TensorMap::begin_file(std::unique_ptr<io::File> file, const std::string& name) {
  current_file_ = std::move(file);
  current_name_ = name;
}

const TensorLocation& TensorMap::slot(const Place& place) const {
  CHECK(place.is_needed());
  if (place.kind == PlaceKind::Global) return tables_.globals[place.index];
  if (place.kind == PlaceKind::Trunk) return tables_.trunk[place.layer][place.index];
  return tables_.experts[place.layer][place.index][static_cast<size_t>(place.part)];
}

TensorLocation& TensorMap::slot(const Place& place) {
  return const_cast<TensorLocation&>(std::as_const(*this).slot(place));
}

TensorMap::Verdict TensorMap::place(const Place& place, const TensorEntry& tensor,
                                    uint64_t data_begin) {
  TensorLocation& location = slot(place);
  if (is_found(location)) return Verdict::Twice;
  if (!dtype_fits(tensor.dtype, roster_.is_u8(place))) return Verdict::WrongDType;
  const std::vector<std::vector<uint64_t>> shapes = roster_.shapes(place);
  if (std::find(shapes.begin(), shapes.end(), tensor.shape) == shapes.end()) {
    return Verdict::WrongShape;
  }
  if (current_file_ != nullptr) {
    tables_.files.push_back(std::move(current_file_));
    file_names_.push_back(current_name_);
  }
  location = {.file = static_cast<uint32_t>(tables_.files.size() - 1),
              .dtype = tensor.dtype,
              .offset = data_begin + tensor.begin,
              .size = tensor.end - tensor.begin};
  if (place.kind == PlaceKind::Expert) spread_stack(place);
  return Verdict::Placed;
}

// A stacked tensor has been put where its first part goes: now each of its parts of each expert.
void TensorMap::spread_stack(const Place& place) {
  const ExpertContract& experts = *contract_.layers[place.layer].experts;
  if (!is_fused(experts)) return;
  const std::span<const ExpertTensorForm> forms = expert_tensor_forms(experts);
  const ExpertTensorForm& form = *std::ranges::find(forms, place.part, &ExpertTensorForm::part);
  TensorLocation location = slot(place);
  const auto put = [&](uint32_t expert, ExpertPart part) {
    const PartShape shape = part_shape(experts, part);
    location.size = shape.rows * shape.cols * bytes_of(location.dtype);
    tables_.experts[place.layer][expert][static_cast<size_t>(part)] = location;
    location.offset += location.size;
  };
  for (uint32_t expert = 0; expert < experts.expert_count; ++expert) {
    put(expert, form.part);
    if (form.second) put(expert, *form.second);
  }
}

const std::string& TensorMap::file_at(const Place& place) const {
  const TensorLocation& location = slot(place);
  CHECK(is_found(location));
  return file_names_[location.file];
}

void TensorMap::mark_lost(const Place& place) {
  TensorLocation& location = slot(place);
  if (!is_found(location)) location.file = kLost;
}

TensorMap::Missing TensorMap::missing_globals(size_t limit) const {
  Missing missing;
  for (size_t i = 0; i < contract_.globals.size(); ++i) {
    note_missing(contract_.globals[i], tables_.globals[i], limit, missing);
  }
  return missing;
}

TensorMap::Missing TensorMap::missing_in_layer(uint32_t layer, size_t limit) const {
  Missing missing;
  const std::vector<TensorSpec>& trunk = contract_.layers[layer].trunk;
  for (size_t i = 0; i < trunk.size(); ++i) {
    note_missing(trunk[i], tables_.trunk[layer][i], limit, missing);
  }
  const std::optional<ExpertContract>& experts = contract_.layers[layer].experts;
  for (uint32_t set = 0; experts && set < expert_set_count(*experts); ++set) {
    const ExpertLocation& parts = tables_.experts[layer][set];
    if (std::none_of(parts.begin(), parts.end(), is_missing)) continue;
    for (const ExpertTensorSpec& tensor : expert_tensors(contract_, layer, set)) {
      if (!is_missing(parts[static_cast<size_t>(tensor.part)])) continue;
      ++missing.count;
      if (missing.names.size() < limit) missing.names.push_back(tensor.name);
    }
  }
  return missing;
}

TensorMap::Found TensorMap::found_globals() const {
  Found found;
  count_found(contract_.globals, tables_.globals, found);
  return found;
}

TensorMap::Found TensorMap::found_in_layer(uint32_t layer) const {
  Found found;
  count_found(contract_.layers[layer].trunk, tables_.trunk[layer], found);
  const std::optional<ExpertContract>& experts = contract_.layers[layer].experts;
  if (!experts) return found;
  for (const ExpertLocation& expert : tables_.experts[layer])
    for (const TensorLocation& part : expert) found.bytes += part.size;
  for (uint32_t set = 0; set < expert_set_count(*experts); ++set)
    for (const ExpertTensorForm& form : expert_tensor_forms(*experts))
      found.count += is_found(tables_.experts[layer][set][static_cast<size_t>(form.part)]) ? 1 : 0;
  return found;
}

}  // namespace deltafin::checkpoint
