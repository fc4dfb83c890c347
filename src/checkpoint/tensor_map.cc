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

void count_found(const TensorLocation& location, TensorMap::Found& found) {
  if (!is_found(location)) return;
  ++found.count;
  found.bytes += location.size;
}

void note_missing(const TensorSpec& spec, const TensorLocation& location, size_t limit,
                  TensorMap::Missing& missing) {
  if (!is_missing(location)) return;
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
  return Verdict::Placed;
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
  const std::vector<ExpertLocation>& experts = tables_.experts[layer];
  for (uint32_t expert = 0; expert < experts.size(); ++expert) {
    const bool is_whole = std::none_of(experts[expert].begin(), experts[expert].end(), is_missing);
    if (is_whole) continue;
    for (const ExpertPartSpec& part : expert_tensors(contract_, layer, expert)) {
      if (!is_missing(experts[expert][static_cast<size_t>(part.part)])) continue;
      ++missing.count;
      if (missing.names.size() < limit) missing.names.push_back(part.name);
    }
  }
  return missing;
}

TensorMap::Found TensorMap::found_globals() const {
  Found found;
  for (const TensorLocation& location : tables_.globals) count_found(location, found);
  return found;
}

TensorMap::Found TensorMap::found_in_layer(uint32_t layer) const {
  Found found;
  for (const TensorLocation& location : tables_.trunk[layer]) count_found(location, found);
  for (const ExpertLocation& expert : tables_.experts[layer]) {
    for (const TensorLocation& location : expert) count_found(location, found);
  }
  return found;
}

}  // namespace deltafin::checkpoint
