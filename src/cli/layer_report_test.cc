#include "cli/layer_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace deltafin::cli {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

engine::EngineCounters counters_of(uint64_t times) {
  engine::EngineCounters counters;
  counters.experts.layers = {{},
                             {.hits = 3 * times,
                              .misses = times,
                              .bytes_read = 1'000'000 * times,
                              .wait = milliseconds(2 * times),
                              .compute = milliseconds(times)}};
  counters.experts.hits = 3 * times;
  counters.experts.hint_bytes = 7 * times;
  counters.layer_times = {milliseconds(times), milliseconds(4 * times)};
  counters.passes = times;
  counters.trunk.stream.wait = milliseconds(times);
  return counters;
}

TEST(LayerReport, SubtractsWhatWasBefore) {
  const engine::EngineCounters part = difference(counters_of(2), counters_of(6));
  EXPECT_EQ(part.passes, 4u);
  EXPECT_EQ(part.experts.hits, 12u);
  EXPECT_EQ(part.experts.hint_bytes, 28u);
  EXPECT_EQ(part.experts.layers[1].wait, milliseconds(8));
  EXPECT_EQ(part.layer_times[1], milliseconds(16));
  EXPECT_EQ(part.trunk.stream.wait, milliseconds(4));
  // Counters that were never looked at are all zero.
  EXPECT_EQ(difference({}, counters_of(6)).experts.layers[1].misses, 6u);
}

TEST(LayerReport, AveragesOverPasses) {
  const std::string text = layer_table(counters_of(4), 4);
  EXPECT_THAT(text, HasSubstr("    0     1.000     0.000     0.000     0.00     0.00      0.00\n"));
  EXPECT_THAT(text, HasSubstr("    1     4.000     2.000     1.000     3.00     1.00      1.00\n"));
  EXPECT_EQ(layer_table(counters_of(4), 0), "");
}

TEST(LayerReport, HasTotalsAsJson) {
  const nlohmann::ordered_json layers = layers_json(counters_of(4));
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_EQ(layers[1].at("misses"), 4);
  EXPECT_EQ(layers[1].at("wait_seconds"), 0.008);
}

}  // namespace
}  // namespace deltafin::cli
