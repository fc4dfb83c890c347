#include "text/stream_decoder.h"

#include "text/utf8.h"

namespace deltafin::text {

namespace {
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
}

std::string StreamDecoder::push(std::string_view bytes) {
  // What was held back goes first; then there is one text to decode, whatever the cuts were.
  std::string joined;
  if (!pending_.empty()) {
    joined = pending_.append(bytes);
    pending_.clear();
    bytes = joined;
  }
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Utf8Step step = next_utf8(bytes);
    if (step.kind == Utf8Kind::Incomplete) {
      pending_ = bytes;
      break;
    }
    text += step.kind == Utf8Kind::Complete ? bytes.substr(0, step.size) : kReplacement;
    bytes.remove_prefix(step.size);
  }
  return text;
}

std::string StreamDecoder::finish() {
  // An incomplete sequence is valid so far, so it is one maximal part and becomes one U+FFFD.
  std::string text(pending_.empty() ? std::string_view() : kReplacement);
  pending_.clear();
  return text;
}

}  // namespace deltafin::text
