#include "text/chat/segments.h"

#include <algorithm>

namespace deltafin::text {

SegmentList& SegmentList::text(std::string_view piece) {
  if (piece.empty()) return *this;
  if (runs_ == TextRuns::Joined && !segments_.empty() &&
      segments_.back().mode == SpecialTokens::AsText) {
    segments_.back().text += piece;
  } else {
    segments_.push_back({std::string(piece), SpecialTokens::AsText});
  }
  return *this;
}

SegmentList& SegmentList::control(std::string_view piece) {
  if (!piece.empty()) segments_.push_back({std::string(piece), SpecialTokens::Parse});
  return *this;
}

SegmentList& SegmentList::template_text(std::string_view words,
                                        std::span<const std::string_view> controls) {
  for (size_t begin = 0, at = 0; at <= words.size();) {
    const std::string_view rest = words.substr(at);
    const auto found =
        std::find_if(controls.begin(), controls.end(),
                     [&](std::string_view spelled) { return rest.starts_with(spelled); });
    if (!rest.empty() && found == controls.end()) {
      ++at;
      continue;
    }
    text(words.substr(begin, at - begin));
    if (rest.empty()) break;
    control(*found);
    begin = at += found->size();
  }
  return *this;
}

std::string joined(const std::vector<Segment>& segments) {
  std::string text;
  for (const Segment& segment : segments) text += segment.text;
  return text;
}

Result<std::vector<TokenId>> encode_segments(const Tokenizer& tokenizer,
                                             const std::vector<Segment>& segments) {
  std::vector<TokenId> ids;
  for (const Segment& segment : segments) {
    TRY(const std::vector<TokenId> more, tokenizer.encode(segment.text, segment.mode));
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

}  // namespace deltafin::text
