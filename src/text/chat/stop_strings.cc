#include "text/chat/stop_strings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.h"
#include "text/utf8.h"

namespace deltafin::text {

Result<StopStrings> StopStrings::create(const std::vector<std::string>& stops) {
  if (stops.size() > limits::kStops) {
    return fail(ErrorCode::Usage, fmt::format("stop: {} stop strings, expected at most {}",
                                              stops.size(), limits::kStops));
  }
  StopStrings set;
  for (size_t i = 0; i < stops.size(); ++i) {
    const auto wrong = [&](const std::string& what) {
      return fail(ErrorCode::Usage, fmt::format("stop[{}]: {}", i, what));
    };
    if (stops[i].empty()) return wrong("is empty, so would stop before anything");
    if (stops[i].size() > limits::kStopBytes) {
      return wrong(
          fmt::format("{} bytes long, expected at most {}", stops[i].size(), limits::kStopBytes));
    }
    if (const std::optional<size_t> bad = find_ill_formed(stops[i])) {
      return wrong(fmt::format("byte {} is not UTF-8", *bad));
    }
    set.add(stops[i], i);
  }
  set.stops_ = stops;
  set.link();
  return set;
}

uint32_t StopStrings::child(const Node& node, char byte) {
  const auto found =
      std::lower_bound(node.next.begin(), node.next.end(), std::pair(byte, uint32_t{0}));
  return found != node.next.end() && found->first == byte ? found->second : 0;
}

void StopStrings::add(const std::string& stop, size_t index) {
  uint32_t at = 0;
  for (const char byte : stop) {
    uint32_t next = child(nodes_[at], byte);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({});
      nodes_.back().depth = nodes_[at].depth + 1;
      const std::pair edge(byte, next);
      auto& edges = nodes_[at].next;
      edges.insert(std::upper_bound(edges.begin(), edges.end(), edge), edge);
    }
    at = next;
  }
  // The same stop given twice is the first.
  if (nodes_[at].stop < 0) nodes_[at].stop = static_cast<int32_t>(index);
}

void StopStrings::link() {
  // Nodes in order of their depth, so that a fallback, which is less deep, is ready.
  std::vector<uint32_t> order = {0};
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t at = order[i];
    for (const auto& [byte, next] : nodes_[at].next) {
      order.push_back(next);
      if (at != 0) nodes_[next].fallback = step(nodes_[at].fallback, byte);
      // A whole stop is longer than any that only ends it.
      if (nodes_[next].stop < 0) nodes_[next].stop = nodes_[nodes_[next].fallback].stop;
    }
  }
}

uint32_t StopStrings::step(uint32_t node, char byte) const {
  for (;;) {
    if (const uint32_t next = child(nodes_[node], byte)) return next;
    if (node == 0) return 0;
    node = nodes_[node].fallback;
  }
}

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return "";
  std::string shown = std::exchange(held_, {});
  shown.reserve(shown.size() + text.size());
  for (const char byte : text) {
    shown += byte;
    node_ = stops_->step(node_, byte);
    const int32_t stop = stops_->nodes_[node_].stop;
    if (stop < 0) continue;
    stopped_ = static_cast<size_t>(stop);
    shown.resize(shown.size() - stops_->stops_[*stopped_].size());
    return shown;
  }
  const size_t kept = shown.size() - stops_->nodes_[node_].depth;
  held_ = shown.substr(kept);
  shown.resize(kept);
  return shown;
}

std::string StopMatcher::finish() {
  node_ = 0;
  return std::exchange(held_, {});
}

}  // namespace deltafin::text
