// A benchmark that is a program of its own and not one of Google Benchmark's: it measures parts,
// each over some rounds, while others may use the machine too.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "machine.h"
#include "record.h"

namespace deltafin::bench {

class Parts {
 public:
  // From --benchmark_filter=TEXT, --benchmark_repetitions=ROUNDS and the flags of Recording. Empty
  // when there is no file to write to, which standard error then says.
  static std::optional<Parts> open(int& count, char** arguments);

  size_t rounds() const { return rounds_; }
  bool is_wanted(std::string_view part) const { return part.find(filter_) != part.npos; }

  // What a part measures lies between these. Rows are written behind both.
  void begin() { others_.look(); }
  void end() { others_share_ = others_.look(); }
  // One row, flushed: its `fields`, then what others used, and the load.
  void write(const std::string& name, const nlohmann::ordered_json& fields);

 private:
  Recording recording_;
  std::string filter_;
  size_t rounds_ = 1;
  Others others_;
  double others_share_ = 0;
};

}  // namespace deltafin::bench
