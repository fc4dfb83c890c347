#include "text/chat/marker_scanner.h"

#include <algorithm>

#include "base/check.h"

namespace deltafin::text {

MarkerScanner::MarkerScanner(std::vector<std::string_view> markers) : markers_(std::move(markers)) {
  for (const std::string_view marker : markers_) CHECK(marker.starts_with('<'));
}

std::vector<MarkerScanner::Piece> MarkerScanner::push(std::string_view text) {
  // At most as much is held back as a marker is long.
  const std::string joined = held_.append(text);
  held_.clear();
  std::vector<Piece> pieces;
  size_t begin = 0;
  const auto emit_text = [&](size_t end) {
    if (end > begin) pieces.push_back({joined.substr(begin, end - begin), false});
  };
  for (size_t at = joined.find('<'); at != std::string::npos; at = joined.find('<', at)) {
    const std::string_view rest = std::string_view(joined).substr(at);
    const auto found = std::find_if(markers_.begin(), markers_.end(), [&](std::string_view marker) {
      return rest.starts_with(marker);
    });
    if (found != markers_.end()) {
      emit_text(at);
      pieces.push_back({std::string(*found), true});
      begin = at += found->size();
      continue;
    }
    if (std::any_of(markers_.begin(), markers_.end(),
                    [&](std::string_view marker) { return marker.starts_with(rest); })) {
      emit_text(at);
      held_ = rest;
      return pieces;
    }
    ++at;
  }
  emit_text(joined.size());
  return pieces;
}

}  // namespace deltafin::text
