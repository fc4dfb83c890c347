// A prompt before tokenization: what is structure and what is text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace deltafin::text {

// Tokenized by itself: merging of bytes never crosses its ends.
struct Segment {
  std::string text;
  // Structure: control tokens that the template writes. Everything else, above all what a user
  // wrote, is text in which a spelled control token is only its bytes.
  SpecialTokens mode = SpecialTokens::AsText;
  bool operator==(const Segment&) const = default;
};

// What joins the text that a template writes in several pieces. Published tokenizers merge bytes
// across such pieces or not, and ids depend on it.
enum class TextRuns : uint8_t {
  Joined,  // Kimi K2, Qwen: one string is encoded, so only control tokens interrupt
  Apart,   // Kimi K3: every piece is encoded alone
};

class SegmentList {
 public:
  explicit SegmentList(TextRuns runs) : runs_(runs) {}

  // Empty pieces leave nothing.
  SegmentList& text(std::string_view piece);
  SegmentList& control(std::string_view piece);
  // A template's own words, in which all that is spelled like one of `controls` is control.
  SegmentList& template_text(std::string_view words, std::span<const std::string_view> controls);

  std::vector<Segment> take() { return std::move(segments_); }

 private:
  TextRuns runs_;
  std::vector<Segment> segments_;
};

// All segments as one string, for people.
std::string joined(const std::vector<Segment>& segments);

// Errors: Usage, as Tokenizer::encode.
Result<std::vector<TokenId>> encode_segments(const Tokenizer& tokenizer,
                                             const std::vector<Segment>& segments);

}  // namespace deltafin::text
