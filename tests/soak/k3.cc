#include "soak/k3.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "support/golden.h"

namespace deltafin::test {

std::string k3_config() {
  const std::string path = golden_path("configs/kimi-k3.json");
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error(path + ": cannot read");
  return text.str();
}

std::string k3_config(uint32_t layer_count, uint32_t vocab_size) {
  nlohmann::json config = nlohmann::json::parse(k3_config());
  nlohmann::json& text = config["text_config"];
  text["num_hidden_layers"] = layer_count;
  for (const char* kind : {"kda_layers", "full_attn_layers"}) {
    nlohmann::json& layers = text["linear_attn_config"][kind];
    nlohmann::json kept = nlohmann::json::array();
    for (const nlohmann::json& layer : layers)
      if (layer.get<uint32_t>() <= layer_count) kept.push_back(layer);
    layers = kept;
  }
  text["vocab_size"] = vocab_size;
  for (const char* token : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    config.erase(token);
    text.erase(token);
  }
  config.erase("vision_config");
  return config.dump();
}

}  // namespace deltafin::test
