// Stop strings: output ends where one of them appears, and nobody sees it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace deltafin::text {

// A set of stop strings, as an automaton (Aho and Corasick, 1975). Immutable; any thread may read.
class StopStrings {
 public:
  // Errors: Usage, naming the field "stop[2]": an empty stop, one that is not UTF-8 or longer than
  // limits::kStopBytes, more than limits::kStops of them.
  static Result<StopStrings> create(const std::vector<std::string>& stops);

  bool empty() const { return stops_.empty(); }

 private:
  friend class StopMatcher;

  struct Node {
    // Sorted by byte; few nodes have more than one.
    std::vector<std::pair<char, uint32_t>> next;
    uint32_t fallback = 0;  // the longest other end of this text that begins a stop
    uint32_t depth = 0;     // bytes of stop that have been read here
    int32_t stop = -1;      // the longest stop that ends here
  };

  StopStrings() : nodes_(1) {}
  static uint32_t child(const Node& node, char byte);  // 0: none
  void add(const std::string& stop, size_t index);
  void link();
  uint32_t step(uint32_t node, char byte) const;

  std::vector<Node> nodes_;  // the first is the root
  std::vector<std::string> stops_;
};

// Follows one output. Text comes in pieces that end anywhere; what comes out is the same for all
// cuts. The stop that is complete first ends the output, of those complete at once the longest.
// Linear time; not thread-safe.
class StopMatcher {
 public:
  // `stops` must outlive it.
  explicit StopMatcher(const StopStrings& stops) : stops_(&stops) {}

  // What can be shown: all but what may begin a stop, and nothing from a stop on. After a stop
  // nothing more comes.
  std::string push(std::string_view text);
  // The output has ended without another stop: what was held back.
  std::string finish();

  // Which stop has ended the output, by its place in the list.
  std::optional<size_t> stopped() const { return stopped_; }

 private:
  const StopStrings* stops_;
  uint32_t node_ = 0;
  std::string held_;  // as long as the node is deep
  std::optional<size_t> stopped_;
};

}  // namespace deltafin::text
