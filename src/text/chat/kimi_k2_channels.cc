#include "text/chat/kimi_k2_channels.h"

#include <fmt/format.h>

#include "text/chat/json_value.h"
#include "text/chat/python_text.h"

namespace deltafin::text {

namespace {

constexpr std::string_view kThink = kKimiK2Markers[0], kThinkEnd = kKimiK2Markers[1];
constexpr std::string_view kSection = kKimiK2Markers[2], kSectionEnd = kKimiK2Markers[3];
constexpr std::string_view kCall = kKimiK2Markers[4], kArguments = kKimiK2Markers[5];
constexpr std::string_view kCallEnd = kKimiK2Markers[6], kTurnEnd = kKimiK2Markers[7];

// NAME of functions.NAME:N; empty when the header has another form.
std::string name_in(std::string_view id) {
  constexpr std::string_view kPrefix = "functions.";
  if (id.starts_with(kPrefix)) id.remove_prefix(kPrefix.size());
  const size_t colon = id.find(':');
  return colon == std::string_view::npos ? "" : std::string(id.substr(0, colon));
}

class Grammar final : public ChannelGrammar {
 public:
  explicit Grammar(ChannelStart start)
      : place_(start == ChannelStart::Reasoning ? Place::Think : Place::Answer) {}

  void text(std::string_view text, ChannelSink& sink) override {
    switch (place_) {
      case Place::Think:
        at_start_ = at_start_ && text.empty();
        sink.text(Channel::Reasoning, text);
        break;
      case Place::Answer:
        answer(text, sink);
        break;
      case Place::Header:
        header_ += text;
        break;
      case Place::Arguments:
        arguments_ += text;
        break;
      case Place::Section:
      case Place::AfterSection:
      case Place::Done:
        break;
    }
  }

  void marker(std::string_view marker, ChannelSink& sink) override {
    if (marker == kTurnEnd) {
      end(OutputEnd::EndOfTurn, sink);
      return;
    }
    switch (place_) {
      case Place::Think:
        if (marker == kThink && at_start_) return;
        if (marker == kThinkEnd) {
          enter(Place::Answer);
        } else if (marker == kSection) {
          enter(Place::Section);
        } else {
          text(marker, sink);
        }
        break;
      case Place::Answer:
        if (marker == kThink && at_start_) {
          enter(Place::Think);
        } else if (marker == kSection) {
          enter(Place::Section);
        } else if (marker != kThinkEnd) {
          text(marker, sink);
        }
        break;
      case Place::Section:
      case Place::AfterSection:
        if (marker == kCall) begin_call();
        if (marker == kSection) place_ = Place::Section;
        if (marker == kSectionEnd) place_ = Place::AfterSection;
        break;
      case Place::Header:
      case Place::Arguments:
        marker_in_call(marker, sink);
        break;
      case Place::Done:
        break;
    }
  }

  void end(OutputEnd end, ChannelSink& sink) override {
    if (place_ == Place::Answer) sink.text(Channel::Answer, std::exchange(leading_space_, {}));
    if (is_in_call()) {
      // Arguments that had not even begun are not complete, though they could have been none.
      const bool is_complete =
          place_ == Place::Arguments && !is_blank(arguments_) && parse_arguments().has_value();
      if (is_complete) {
        finish_call(sink);
        place_ = Place::AfterSection;
      } else if (end == OutputEnd::EndOfTurn) {
        bad_call("the turn ended within the call", sink);
      }
    }
    if (end == OutputEnd::EndOfTurn) place_ = Place::Done;
  }

  Channel channel() const override {
    if (place_ == Place::Think) return Channel::Reasoning;
    return is_in_call() ? Channel::Call : Channel::Answer;
  }

 private:
  enum class Place : uint8_t { Think, Answer, Section, Header, Arguments, AfterSection, Done };

  bool is_in_call() const { return place_ == Place::Header || place_ == Place::Arguments; }
  void enter(Place place) {
    place_ = place;
    at_start_ = true;
    leading_space_.clear();
  }

  void answer(std::string_view text, ChannelSink& sink) {
    if (at_start_) {
      leading_space_ += text;
      if (is_blank(text)) return;
      at_start_ = false;
      sink.text(Channel::Answer, std::exchange(leading_space_, {}));
    } else {
      sink.text(Channel::Answer, text);
    }
  }

  void begin_call() {
    place_ = Place::Header;
    header_.clear();
    arguments_.clear();
  }

  void marker_in_call(std::string_view marker, ChannelSink& sink) {
    const bool ends_call = marker == kCallEnd || marker == kCall || marker == kSectionEnd;
    if (marker == kArguments && place_ == Place::Header) {
      place_ = Place::Arguments;
    } else if (ends_call) {
      finish_call(sink);
      place_ = marker == kSectionEnd ? Place::AfterSection : Place::Section;
      if (marker == kCall) begin_call();
    } else {
      text(marker, sink);
    }
  }

  // The text of one JSON object; nothing at all is an empty one.
  std::expected<std::string, BadArguments> parse_arguments() const {
    const std::string text(strip(arguments_));
    if (text.empty()) return "{}";
    const Result<JsonValue> parsed = parse_json(text, JsonDialect::Strict);
    if (!parsed) return std::unexpected(BadArguments{parsed.error().what, arguments_});
    if (parsed->as_object() != nullptr) return text;
    return std::unexpected(BadArguments{
        fmt::format("the arguments are {}, not an object", kind_of(*parsed)), arguments_});
  }

  void finish_call(ChannelSink& sink) {
    const std::string id(strip(header_));
    const std::string name = name_in(id);
    if (place_ == Place::Header) {
      bad_call("the call has no arguments", sink);
    } else if (name.empty()) {
      bad_call("the call's header is not functions.NAME:N", sink);
    } else {
      sink.call({id, name, parse_arguments()});
    }
  }

  void bad_call(std::string what, ChannelSink& sink) {
    const std::string id(strip(header_));
    sink.call({id, name_in(id), std::unexpected(BadArguments{std::move(what), arguments_})});
  }

  Place place_;
  bool at_start_ = true;  // of the reasoning or the answer: nothing but whitespace has come
  std::string leading_space_;
  std::string header_, arguments_;  // of the call
};

}  // namespace

std::unique_ptr<ChannelGrammar> kimi_k2_grammar(ChannelStart start) {
  return std::make_unique<Grammar>(start);
}

}  // namespace deltafin::text
