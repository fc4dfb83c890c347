#include "soak/synthetic_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/clock.h"
#include "checkpoint/config.h"

namespace deltafin::test {

using checkpoint::DType;
using checkpoint::ExpertPart;
using checkpoint::TensorKind;
using checkpoint::TensorRole;
using checkpoint::TensorSpec;

struct SyntheticCheckpoint::Tensor {
  std::string name;
  DType dtype = DType::BF16;
  std::vector<uint64_t> shape;
  NoiseForm form;
  uint64_t used_count = 1ull << 40;  // elements; zeros follow

  uint64_t used_bytes() const { return std::min(bytes(), used_count * bytes_of(dtype)); }
  uint64_t bytes() const { return checked_product(shape).value() * bytes_of(dtype); }
};

namespace {

constexpr const char* kConfigFile = "config.json";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr size_t kHeaderLengthBytes = 8;

// What keeps the size of x in a product of `count` elements.
double deviation_of_product(uint64_t count) { return 1 / std::sqrt(double(count)); }

NoiseForm form_of_matrix(const TensorSpec& spec) {
  const bool is_table = spec.role == TensorRole::Embedding;
  return signed_floats(is_table ? 1 : deviation_of_product(spec.shapes[0].back()), spec.published);
}

NoiseForm form_of_vector(const TensorSpec& spec) {
  switch (spec.role) {
    case TensorRole::AttentionResProj:
    case TensorRole::MlpResProj:
    case TensorRole::OutputResProj:
      return signed_floats(deviation_of_product(spec.shapes[0].back()), spec.published);
    case TensorRole::QConv:
    case TensorRole::KConv:
    case TensorRole::VConv:
      return signed_floats(deviation_of_product(spec.shapes[0].back()), spec.published);
    case TensorRole::DtBias:  // heads remember for a few tokens or for many, not for none
      return negative_floats(spec.published);
    case TensorRole::RouterBias:  // enough to choose between neighbours
      return signed_floats(0.01, spec.published);
    default:  // norms, and A_log, which makes factors from 1.6 to 7
      return positive_floats(spec.published);
  }
}

NoiseForm form_of_expert(const checkpoint::ExpertContract& experts, ExpertPart part) {
  const bool is_down = part == ExpertPart::W2 || part == ExpertPart::W2Scale;
  const double deviation = deviation_of_product(is_down ? experts.inner_dim : experts.input_dim);
  if (experts.format == checkpoint::ExpertFormat::Plain)
    return signed_floats(deviation, DType::BF16);
  const bool is_scale =
      part == ExpertPart::W1Scale || part == ExpertPart::W2Scale || part == ExpertPart::W3Scale;
  return is_scale ? mxfp4_scales(deviation) : NoiseForm{};
}

// A measured stretch of time, added to a sum.
class TimeSum {
 public:
  explicit TimeSum(std::atomic<int64_t>& sum) : sum_(sum), start_(clock_.now()) {}
  ~TimeSum() { sum_ += (clock_.now() - start_).count(); }

 private:
  std::atomic<int64_t>& sum_;
  SystemClock clock_;
  std::chrono::nanoseconds start_;
};

// Part of a text as of a file.
size_t copy_text(std::string_view text, uint64_t offset, std::span<std::byte> into) {
  if (offset >= text.size() || into.empty()) return 0;
  const size_t size = std::min(into.size(), text.size() - size_t(offset));
  std::memcpy(into.data(), text.data() + offset, size);
  return size;
}

class TextFile final : public io::File {
 public:
  TextFile(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return text_.size(); }
  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    return copy_text(text_, offset, into);
  }

 private:
  const std::string path_, text_;
};

}  // namespace

class SyntheticCheckpoint::ShardFile final : public io::File {
 public:
  ShardFile(std::string path, const SyntheticCheckpoint& owner, size_t shard)
      : path_(std::move(path)), owner_(owner), shard_(shard) {}

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return shard().file_bytes; }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    const uint64_t wanted = std::min<uint64_t>(into.size(), size() - std::min(offset, size()));
    const std::span<std::byte> all = into.first(size_t(wanted));
    size_t done = 0;
    if (offset < data_begin()) done = copy_text(*owner_.header(shard_), offset, all);
    while (done < all.size()) done += read_tensor(offset + done, all.subspan(done));
    return all.size();
  }

 private:
  const Shard& shard() const { return owner_.shards_[shard_]; }
  uint64_t data_begin() const { return shard().stretches.front().begin; }

  // From `offset`, which is inside of a tensor, to its end at most.
  size_t read_tensor(uint64_t offset, std::span<std::byte> into) const {
    const std::vector<Stretch>& stretches = shard().stretches;
    const auto next = std::ranges::upper_bound(stretches, offset, {}, &Stretch::begin);
    const uint64_t end = next == stretches.end() ? shard().file_bytes : next->begin;
    const Stretch& stretch = *std::prev(next);
    const size_t size = std::min<size_t>(into.size(), end - offset);
    make_noise(stretch.noise, offset - stretch.begin, into.first(size));
    return size;
  }

  const std::string path_;
  const SyntheticCheckpoint& owner_;
  const size_t shard_;
};

SyntheticCheckpoint::SyntheticCheckpoint(std::string config) : config_(std::move(config)) {
  Result<checkpoint::ModelContract> contract = checkpoint::parse_config(config_);
  if (!contract) throw std::runtime_error(contract.error().what);
  contract_ = std::move(*contract);
  if (contract_.kimi() == nullptr) throw std::runtime_error("not of the Kimi family");
  const bool has_vision = nlohmann::json::parse(config_).contains("vision_config");
  const size_t count = contract_.layers.size() + (has_vision ? 3 : 1);
  for (size_t i = 0; i < count; ++i)
    shards_.push_back({.name = fmt::format("model-{:05}-of-{:06}.safetensors", i + 1, count)});
  for (size_t i = 0; i < count; ++i) lay_out(i);
}

std::vector<SyntheticCheckpoint::Tensor> SyntheticCheckpoint::tensors_of(size_t shard) const {
  std::vector<Tensor> tensors;
  const auto add_all = [&](const std::vector<TensorSpec>& specs) {
    for (const TensorSpec& spec : specs) {
      tensors.push_back(
          {.name = spec.name,
           .dtype = spec.published,
           .shape = spec.shapes[0],
           .form = spec.kind == TensorKind::Matrix ? form_of_matrix(spec) : form_of_vector(spec)});
      if (spec.role == TensorRole::ALog)
        tensors.back().used_count = contract_.kimi()->kda_head_count;
    }
  };
  const auto add_other = [&](std::string name, std::vector<uint64_t> shape) {
    tensors.push_back({.name = std::move(name),
                       .shape = std::move(shape),
                       .form = signed_floats(0.02, DType::BF16)});
  };
  const auto add_experts = [&](uint32_t layer) {
    const checkpoint::ExpertContract& experts = *contract_.layers[layer].experts;
    for (uint32_t set = 0; set < expert_set_count(experts); ++set)
      for (checkpoint::ExpertTensorSpec& spec : expert_tensors(contract_, layer, set))
        tensors.push_back({.name = std::move(spec.name),
                           .dtype = spec.is_u8 ? DType::U8 : DType::BF16,
                           .shape = std::move(spec.shape),
                           .form = form_of_expert(experts, spec.part)});
  };

  const size_t layer_count = contract_.layers.size();
  if (shard < layer_count) {
    add_all(contract_.layers[shard].trunk);
    if (contract_.layers[shard].experts) add_experts(uint32_t(shard));
  } else if (shard == layer_count) {
    add_all(contract_.globals);
  } else if (shard == layer_count + 1) {
    add_other("mm_projector.linear_1.weight", {4096, 4096});
    add_other("mm_projector.linear_2.weight", {7168, 4096});
    add_other("mm_projector.post_norm.weight", {7168});
  } else {
    add_other("vision_tower.patch_embed.proj.weight", {1024, 3, 14, 14});
    add_other("vision_tower.patch_embed.pos_emb.weight", {64, 64, 1024});
    add_other("vision_tower.encoder.final_layernorm.weight", {1024});
    for (int block = 0; block < 27; ++block) {
      const std::string prefix = fmt::format("vision_tower.encoder.blocks.{}.", block);
      add_other(prefix + "norm0.weight", {1024});
      add_other(prefix + "norm1.weight", {1024});
      add_other(prefix + "wqkv.weight", {3 * 1536, 1024});
      add_other(prefix + "wo.weight", {1024, 1536});
      add_other(prefix + "mlp.fc0.weight", {4096, 1024});
      add_other(prefix + "mlp.fc1.weight", {1024, 4096});
    }
  }
  std::ranges::sort(tensors, {}, &Tensor::name);
  return tensors;
}

std::string SyntheticCheckpoint::header_of(size_t shard) const {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  uint64_t at = 0;
  for (const Tensor& tensor : tensors_of(shard)) {
    const uint64_t end = at + tensor.bytes();
    fmt::format_to(std::back_inserter(json),
                   R"(,"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", tensor.name,
                   name_of(tensor.dtype), fmt::join(tensor.shape, ","), at, end);
    at = end;
  }
  json += "}";
  std::string header(kHeaderLengthBytes, '\0');
  for (size_t i = 0; i < kHeaderLengthBytes; ++i)
    header[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return header + json;
}

std::shared_ptr<const std::string> SyntheticCheckpoint::header(size_t shard) const {
  const std::lock_guard lock(mutex_);
  if (header_shard_ != shard) {
    const TimeSum sum(text_time_);
    header_ = std::make_shared<const std::string>(header_of(shard));
    header_shard_ = shard;
  }
  return header_;
}

void SyntheticCheckpoint::lay_out(size_t shard) {
  Shard& place = shards_[shard];
  place.file_bytes = header_of(shard).size();
  for (const Tensor& tensor : tensors_of(shard)) {
    place.stretches.push_back(
        {.begin = place.file_bytes, .noise = noise_of(tensor.name, tensor.form)});
    if (tensor.used_bytes() < tensor.bytes())
      place.stretches.push_back({.begin = place.file_bytes + tensor.used_bytes(),
                                 .noise = {.form = {.mask = 0, .base = 0}}});
    place.file_bytes += tensor.bytes();
    tensor_bytes_ += tensor.bytes();
    ++tensor_count_;
  }
}

// As the publishers' tools write it: by name, one tensor a line.
std::string SyntheticCheckpoint::index() const {
  // Shards whose names have a common beginning stay in one piece. Only what belongs to no layer
  // lies in between them.
  struct Run {
    std::string first_name;
    size_t shard = 0, first = 0, count = SIZE_MAX;
  };
  std::vector<Run> runs;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    const std::vector<Tensor> tensors = tensors_of(shard);
    if (shard != contract_.layers.size()) {
      runs.push_back({.first_name = tensors[0].name, .shard = shard});
      continue;
    }
    for (size_t i = 0; i < tensors.size(); ++i)
      runs.push_back({.first_name = tensors[i].name, .shard = shard, .first = i, .count = 1});
  }
  std::ranges::sort(runs, {}, &Run::first_name);

  constexpr size_t kLineBytes = 128;  // about as long as the longest
  std::string text;
  text.reserve(tensor_count_ * kLineBytes);
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n  \"weight_map\": {{",
                 tensor_bytes_);
  const char* separator = "\n";
  for (const Run& run : runs) {
    const std::vector<Tensor> tensors = tensors_of(run.shard);
    const size_t count = std::min(run.count, tensors.size());
    for (const Tensor& tensor : std::span(tensors).subspan(run.first, count))
      fmt::format_to(out, "{}    \"{}\": \"{}\"", std::exchange(separator, ",\n"), tensor.name,
                     shards_[run.shard].name);
  }
  text += "\n  }\n}\n";
  return text;
}

Result<std::unique_ptr<io::File>> SyntheticCheckpoint::open(const std::string& path) const {
  if (path == io::join_path(kFolder, kConfigFile)) return std::make_unique<TextFile>(path, config_);
  if (path == io::join_path(kFolder, kIndexFile)) {
    const TimeSum sum(text_time_);
    return std::make_unique<TextFile>(path, index());
  }
  for (size_t i = 0; i < shards_.size(); ++i)
    if (path == io::join_path(kFolder, shards_[i].name))
      return std::make_unique<ShardFile>(path, *this, i);
  return fail(ErrorCode::Io, fmt::format("{}: cannot open: no such file", path));
}

Result<std::vector<io::DirectoryEntry>> SyntheticCheckpoint::list(const std::string& path) const {
  if (path != kFolder)
    return fail(ErrorCode::Io, fmt::format("{}: cannot list: no such folder", path));
  std::vector<io::DirectoryEntry> entries = {{.name = kConfigFile}};
  for (const Shard& shard : shards_) entries.push_back({.name = shard.name});
  entries.push_back({.name = kIndexFile});
  return entries;
}

bool SyntheticCheckpoint::exists(const std::string& path) const {
  return path == kFolder || path == io::join_path(kFolder, kConfigFile) ||
         path == io::join_path(kFolder, kIndexFile) ||
         std::ranges::any_of(shards_, [&](const Shard& shard) {
           return path == io::join_path(kFolder, shard.name);
         });
}

}  // namespace deltafin::test
