// For the tests of this room: small checkpoints that can be damaged in one place before they are
// written into a simulated storage.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "checkpoint/config.h"
#include "checkpoint/contract.h"
#include "checkpoint/survey.h"
#include "checkpoint/tensor.h"
#include "io/simulated.h"

namespace deltafin::checkpoint::test {

using nlohmann::json;

inline std::string source_path(const std::string& name) {
  return std::string(DELTAFIN_SOURCE_DIR) + "/" + name;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline json golden_config(const std::string& name) {
  return json::parse(read_file(source_path("tests/golden/configs/" + name)));
}

// One edit of a config: `field` is a pointer into it, "/text_config/x"; `value` is JSON, or null,
// which means: erase the field.
inline json edited(json config, const char* field, const char* value) {
  const json::json_pointer pointer(field);
  if (value != nullptr) {
    config[pointer] = json::parse(value);
  } else {
    config.at(pointer.parent_pointer()).erase(pointer.back());
  }
  return config;
}

// What is said about a config, or "accepted". As text, so that a message about a config never
// depends on a library's idea of equality.
inline std::string message(const json& config) {
  const Result<ModelContract> contract = parse_config(config.dump());
  return contract ? "accepted" : contract.error().what;
}

inline ModelContract golden_contract(const std::string& name) {
  const Result<ModelContract> contract =
      parse_config(read_file(source_path("tests/golden/configs/" + name)));
  EXPECT_TRUE(contract.has_value()) << contract.error().what;
  return *contract;
}

// Little-endian length, header, data.
inline std::string safetensors_bytes(const std::string& header, uint64_t data_size) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>(uint64_t{header.size()} >> (8 * i) & 0xff));
  }
  return bytes + header + std::string(data_size, '\0');
}

struct MiniTensor {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
};

// One shard: tensors laid out one after another in the order given.
struct MiniShard {
  std::vector<MiniTensor> tensors;
  int64_t extra_bytes = 0;  // after the last tensor; negative: cut off

  MiniTensor& find(const std::string& name) {
    for (MiniTensor& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    ADD_FAILURE() << "no tensor " << name;
    return tensors.front();
  }
  void drop(const std::string& name) {
    std::erase_if(tensors, [&](const MiniTensor& tensor) { return tensor.name == name; });
  }

  std::string bytes() const {
    nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
    uint64_t at = 0;
    for (const MiniTensor& tensor : tensors) {
      const uint64_t size =
          checked_product(tensor.shape).value() * bytes_of(parse_dtype(tensor.dtype).value());
      header[tensor.name] = {
          {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {at, at + size}}};
      at += size;
    }
    std::string whole = safetensors_bytes(header.dump(), at);
    whole.resize(static_cast<size_t>(static_cast<int64_t>(whole.size()) + extra_bytes));
    return whole;
  }
};

// A model of two layers in three shards: one per layer, and the rest. What is ignored, if anything,
// is in a fourth. `shards`, `config` and `index` may be changed before write().
class MiniCheckpoint {
 public:
  static constexpr const char* kFolder = "/models/mini";
  static constexpr const char* kLayer0 = "model-00001-of-000004.safetensors";
  static constexpr const char* kLayer1 = "model-00002-of-000004.safetensors";
  static constexpr const char* kRest = "model-00003-of-000004.safetensors";
  static constexpr const char* kVision = "model-00004-of-000004.safetensors";

  // A K3: KDA with a dense FFN, MLA with four experts.
  MiniCheckpoint()
      : MiniCheckpoint(small_config(), {{"vision_tower.patch_embed.weight", "BF16", {4, 4}},
                                        {"mm_projector.proj.weight", "BF16", {2, 2}}}) {}

  MiniCheckpoint(json small, std::vector<MiniTensor> ignored) : config(std::move(small)) {
    const Result<ModelContract> parsed = parse_config(config.dump());
    EXPECT_TRUE(parsed.has_value()) << parsed.error().what;
    contract = *parsed;
    fill_layer(0, shards[kLayer0]);
    fill_layer(1, shards[kLayer1]);
    for (const TensorSpec& spec : contract.globals) add(spec, shards[kRest]);
    if (!ignored.empty()) shards[kVision].tensors = std::move(ignored);
    index = index_of(shards);
  }

  static json small_config() {
    json whole = json::parse(read_file(source_path("tests/golden/tiny-k3/config.json")));
    json& text = whole["text_config"];
    text["num_hidden_layers"] = 2;
    text["num_experts"] = 4;
    text["num_experts_per_token"] = 2;
    text["linear_attn_config"]["kda_layers"] = {1};
    text["linear_attn_config"]["full_attn_layers"] = {2};
    return whole;
  }

  static json index_of(const std::map<std::string, MiniShard>& shards) {
    json map = json::object();
    for (const auto& [file, shard] : shards) {
      for (const MiniTensor& tensor : shard.tensors) map[tensor.name] = file;
    }
    return {{"metadata", {{"total_size", 1}}}, {"weight_map", map}};
  }

  void write(io::SimulatedStorage& storage, const std::string& folder = kFolder) const {
    for (const auto& [file, shard] : shards) storage.add_file(folder + "/" + file, shard.bytes());
    if (!config.is_null()) storage.add_file(folder + "/config.json", config.dump());
    if (!index.is_null()) {
      storage.add_file(folder + "/model.safetensors.index.json", index.dump());
    }
    for (const auto& [file, text] : files) storage.add_file(folder + "/" + file, text);
  }

  // All in one file, without an index.
  void merge_into(const std::string& file) {
    MiniShard whole;
    for (const auto& [name, shard] : shards)
      whole.tensors.insert(whole.tensors.end(), shard.tensors.begin(), shard.tensors.end());
    shards = {{file, whole}};
    index = nullptr;
  }

  json config;
  ModelContract contract;
  std::map<std::string, MiniShard> shards;
  json index;                                // null: none is written
  std::map<std::string, std::string> files;  // anything else; replaces what has the same name

 private:
  static void add(const TensorSpec& spec, MiniShard& shard) {
    shard.tensors.push_back({spec.name, "BF16", spec.shapes.front()});
  }

  void fill_layer(uint32_t layer, MiniShard& shard) const {
    const LayerContract& kinds = contract.layers[layer];
    for (const TensorSpec& spec : kinds.trunk) add(spec, shard);
    if (!kinds.experts) return;
    for (uint32_t set = expert_set_count(*kinds.experts); set-- > 0;)
      for (const ExpertTensorSpec& tensor : expert_tensors(contract, layer, set))
        shard.tensors.push_back({tensor.name, tensor.is_u8 ? "U8" : "BF16", tensor.shape});
  }
};

inline Survey survey_of(const MiniCheckpoint& checkpoint) {
  io::SimulatedStorage storage;
  checkpoint.write(storage);
  return Survey::of(storage, MiniCheckpoint::kFolder);
}

}  // namespace deltafin::checkpoint::test
