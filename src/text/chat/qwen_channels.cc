#include "text/chat/qwen_channels.h"

#include "text/chat/python_text.h"
#include "text/chat/qwen_calls.h"

namespace deltafin::text {

namespace {

constexpr std::string_view kThink = kQwenMarkers[0], kThinkEnd = kQwenMarkers[1];
constexpr std::string_view kCall = kQwenMarkers[2], kCallEnd = kQwenMarkers[3];

// Whether the end of some JSON lies within a string.
class JsonStringTracker {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      if (escaped_) {
        escaped_ = false;
      } else if (in_string_ && c == '\\') {
        escaped_ = true;
      } else if (c == '"') {
        in_string_ = !in_string_;
      }
    }
  }
  bool in_string() const { return in_string_; }

 private:
  bool in_string_ = false, escaped_ = false;
};

class Grammar final : public ChannelGrammar {
 public:
  Grammar(ChannelStart start, QwenCalls calls, ToolSchemas schemas)
      : place_(start == ChannelStart::Reasoning ? Place::Think : Place::Answer),
        calls_(calls),
        schemas_(std::move(schemas)) {}

  void text(std::string_view text, ChannelSink& sink) override {
    if (place_ == Place::Call) {
      body_ += text;
      string_.add(text);
    } else if (place_ == Place::Think || place_ == Place::Answer) {
      trimmed(text, sink);
    }
  }

  void marker(std::string_view marker, ChannelSink& sink) override {
    if (place_ == Place::Done) return;
    if (marker == "<|im_end|>" || marker == "<|endoftext|>") {
      end(OutputEnd::EndOfTurn, sink);
    } else if (place_ == Place::Call) {
      marker_in_call(marker, sink);
    } else if (marker == kCall) {
      begin_call();
    } else if (marker == kThink) {
      if (place_ == Place::Answer && at_start_) {
        enter(Place::Think);
      } else if (!at_start_) {
        text(marker, sink);
      }
    } else if (marker == kThinkEnd) {
      if (place_ == Place::Think) enter(Place::Answer);
    } else if (marker == kQwenFunctionMarker) {
      if (place_ == Place::Think) {
        text(marker, sink);
      } else {
        begin_call();
        text(marker, sink);
      }
    }
    // What is left is </tool_call> without a call, which nobody is to see.
  }

  void end(OutputEnd end, ChannelSink& sink) override {
    if (place_ == Place::Answer) flush_newlines(sink);
    if (place_ == Place::Call) {
      ParsedCall call = parse();
      const bool is_complete = calls_ == QwenCalls::Json || strip(body_).starts_with('{')
                                   ? call.arguments.has_value()
                                   : is_complete_element_call(body_);
      if (is_complete) {
        sink.call(std::move(call));
        place_ = Place::AfterCall;
      } else if (end == OutputEnd::EndOfTurn) {
        sink.call({"", call.name,
                   std::unexpected(BadArguments{"the turn ended within the call", body_})});
      }
    }
    if (end == OutputEnd::EndOfTurn) place_ = Place::Done;
  }

  Channel channel() const override {
    if (place_ == Place::Think) return Channel::Reasoning;
    return place_ == Place::Call ? Channel::Call : Channel::Answer;
  }

 private:
  enum class Place : uint8_t { Think, Answer, Call, AfterCall, Done };

  void enter(Place place) {
    place_ = place;
    at_start_ = true;
    newline_count_ = 0;
  }

  // Line feeds at the beginning are dropped, others held back until it is clear what follows.
  void trimmed(std::string_view text, ChannelSink& sink) {
    if (at_start_) text = strip_newlines_left(text);
    if (text.empty()) return;
    at_start_ = false;
    const std::string_view solid = strip_newlines_right(text);
    if (!solid.empty()) {
      flush_newlines(sink);
      sink.text(channel(), solid);
    }
    newline_count_ += text.size() - solid.size();
  }

  void flush_newlines(ChannelSink& sink) {
    sink.text(channel(), std::string(std::exchange(newline_count_, 0), '\n'));
  }

  void begin_call() {
    enter(Place::Call);
    body_.clear();
    string_ = {};
  }

  void marker_in_call(std::string_view marker, ChannelSink& sink) {
    const bool is_boundary = marker == kCallEnd || marker == kCall;
    if (!is_boundary || (calls_ == QwenCalls::Json && string_.in_string())) {
      text(marker, sink);
      return;
    }
    sink.call(parse());
    place_ = Place::AfterCall;
    if (marker == kCall) begin_call();
  }

  ParsedCall parse() const {
    return calls_ == QwenCalls::Json ? parse_json_call(body_) : parse_element_call(body_, schemas_);
  }

  Place place_;
  QwenCalls calls_;
  ToolSchemas schemas_;
  bool at_start_ = true;      // of the reasoning or the answer: no text but line feeds has come
  size_t newline_count_ = 0;  // held back
  std::string body_;          // of the call
  JsonStringTracker string_;  // of body_
};

}  // namespace

std::unique_ptr<ChannelGrammar> qwen_grammar(ChannelStart start, QwenCalls calls,
                                             ToolSchemas schemas) {
  return std::make_unique<Grammar>(start, calls, std::move(schemas));
}

}  // namespace deltafin::text
