// Keeps what a pass computed, to be compared with goldens.
#pragma once

#include <map>
#include <vector>

#include "model/model.h"

namespace deltafin::test {

// The last pass, layer by layer.
class Recorder final : public model::Observer {
 public:
  void on_routes(size_t layer, std::span<const numerics::Route> chosen) override {
    routes[layer].assign(chosen.begin(), chosen.end());
  }
  void on_mixer_output(size_t layer, model::Rows rows) override { keep(mixers[layer], rows); }
  void on_ffn_output(size_t layer, model::Rows rows) override { keep(ffns[layer], rows); }
  void on_layer_output(size_t layer, model::Rows rows) override { keep(layers[layer], rows); }
  void on_final_norm(model::Rows rows) override { keep(final_norm, rows); }

  std::map<size_t, std::vector<numerics::Route>> routes;
  std::map<size_t, std::vector<float>> mixers, ffns, layers;
  std::vector<float> final_norm;

 private:
  static void keep(std::vector<float>& into, model::Rows rows) {
    into.clear();
    for (size_t i = 0; i < rows.count; ++i)
      into.insert(into.end(), rows.row(i), rows.row(i) + rows.width);
  }
};

}  // namespace deltafin::test
