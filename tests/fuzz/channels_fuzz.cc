// Whatever a model writes, and however it is cut: the same channels come out, nothing that was
// shown is taken back, and arguments are JSON objects. The first byte chooses the format, the
// second seeds the cuts; the rest is text in which a byte 0x80 to 0x9F is a whole marker or tag.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/philox.h"
#include "text/chat/channel_parser.h"
#include "text/chat/stop_strings.h"
#include "text/stream_decoder.h"
#include "text/utf8.h"

namespace deltafin::text {
namespace {

constexpr std::array<std::string_view, 32> kWords = {"<|open|>",
                                                     "<|close|>",
                                                     "<|sep|>",
                                                     "<|end_of_msg|>",
                                                     "think",
                                                     "response",
                                                     "tools",
                                                     "call tool=\"f\" index=\"1\"",
                                                     "argument key=\"k\" type=\"number\"",
                                                     "json type=\"object\"",
                                                     "argument",
                                                     "<think>",
                                                     "</think>",
                                                     "<|tool_calls_section_begin|>",
                                                     "<|tool_calls_section_end|>",
                                                     "<|tool_call_begin|>",
                                                     "<|tool_call_argument_begin|>",
                                                     "<|tool_call_end|>",
                                                     "functions.f:0",
                                                     "<|im_end|>",
                                                     "<tool_call>",
                                                     "</tool_call>",
                                                     "{\"name\": \"f\", \"arguments\": {",
                                                     "}}",
                                                     "<function=f>\n",
                                                     "<parameter=k>\n",
                                                     "\n</parameter>",
                                                     "\n</function>",
                                                     "call",
                                                     "message",
                                                     "json",
                                                     "<"};

std::string expand(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 && byte < 0xA0) {
      text += kWords[byte - 0x80];
    } else {
      text += c;
    }
  }
  StreamDecoder decoder;
  text = decoder.push(text);
  return text + decoder.finish();
}

struct Whole {
  std::string reasoning, answer;
  std::vector<ParsedCall> calls;
  bool operator==(const Whole&) const = default;

  void add(const std::vector<ChannelEvent>& events) {
    for (const ChannelEvent& event : events) {
      if (!event.call) {
        CHECK(!event.text.empty());
        CHECK(!find_ill_formed(event.text));
        (event.channel == Channel::Reasoning ? reasoning : answer) += event.text;
        continue;
      }
      calls.push_back(*event.call);
      if (!event.call->arguments) continue;
      const Result<JsonValue> parsed = parse_json(*event.call->arguments, JsonDialect::Strict);
      CHECK(parsed.has_value() && parsed->as_object() != nullptr);
    }
  }
};

void fuzz(std::string_view bytes) {
  ChannelSetup setup;
  const auto choice = static_cast<unsigned char>(bytes[0]);
  setup.format = static_cast<ChannelFormat>(choice & 3);
  setup.start = (choice & 4) != 0 ? ChannelStart::Reasoning : ChannelStart::Answer;
  if ((choice & 8) != 0) {
    setup.tools.push_back(
        parse_json(R"({"name": "f", "parameters": {"properties": {"k": {"type": "number"}}}})",
                   JsonDialect::Strict)
            .value());
  }
  const OutputEnd end = (choice & 16) != 0 ? OutputEnd::EndOfTurn : OutputEnd::CutOff;
  Random random(static_cast<unsigned char>(bytes[1]));
  const std::string text = expand(bytes.substr(2));

  TextChannels at_once(setup), in_pieces(setup);
  Whole expected, whole;
  expected.add(at_once.push(text));
  expected.add(at_once.finish(end));
  const StopStrings stops = StopStrings::create({"<think>", "</", "ab"}).value();
  StopMatcher matcher(stops), matcher_at_once(stops);
  std::string shown;
  for (size_t at = 0; at < text.size();) {
    size_t size = 0;
    for (size_t i = 1 + random.below(4); i > 0 && at + size < text.size(); --i) {
      size += next_utf8(std::string_view(text).substr(at + size)).size;
    }
    const std::string piece = text.substr(at, size);
    whole.add(in_pieces.push(piece));
    shown += matcher.push(piece);
    at += size;
  }
  whole.add(in_pieces.finish(end));
  CHECK(whole == expected);
  CHECK(at_once.channel() == in_pieces.channel());
  std::string shown_at_once = matcher_at_once.push(text);
  shown_at_once += matcher_at_once.finish();
  CHECK(shown + matcher.finish() == shown_at_once);
}

}  // namespace
}  // namespace deltafin::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  deltafin::text::fuzz({reinterpret_cast<const char*>(data), size});
  return 0;
}
