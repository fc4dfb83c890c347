#include "text/chat/kimi_k3_channels.h"

#include <algorithm>
#include <span>

#include "text/chat/json_value.h"

namespace deltafin::text {

namespace {

constexpr std::string_view kOpen = kKimiK3Markers[0], kClose = kKimiK3Markers[1];
constexpr std::string_view kSep = kKimiK3Markers[2], kEndOfMessage = kKimiK3Markers[3];

std::string replace_all(std::string text, std::string_view from, std::string_view to) {
  std::string result;
  size_t begin = 0;
  for (size_t at; (at = text.find(from, begin)) != std::string::npos; begin = at + from.size()) {
    result.append(text, begin, at - begin).append(to);
  }
  return result.append(text, begin);
}

// `tag key="value" key="value"`. What is not of this form ends the list.
struct Header {
  std::string tag;
  std::vector<std::pair<std::string, std::string>> attributes;

  explicit Header(std::string_view text) : tag(text.substr(0, text.find(' '))) {
    text.remove_prefix(tag.size());
    while (text.starts_with(' ')) {
      const size_t equals = text.find("=\"");
      if (equals == std::string_view::npos) return;
      const size_t end = text.find('"', equals + 2);
      if (end == std::string_view::npos) return;
      std::string value(text.substr(equals + 2, end - equals - 2));
      value = replace_all(std::move(value), "&quot;", "\"");
      attributes.emplace_back(text.substr(1, equals - 1),
                              replace_all(std::move(value), "&amp;", "&"));
      text.remove_prefix(end + 1);
    }
  }

  // Empty when there is none.
  std::string attribute(std::string_view key) const {
    for (const auto& [name, value] : attributes) {
      if (name == key) return value;
    }
    return "";
  }
};

class Grammar final : public ChannelGrammar {
 public:
  explicit Grammar(ChannelStart start)
      : place_(start == ChannelStart::Reasoning ? Place::Think : Place::Response) {}

  void text(std::string_view text, ChannelSink& sink) override {
    if (header_marker_.empty()) {
      body(text, sink);
      return;
    }
    header_ += text;
    if (!may_become_element()) release_header(sink);
  }

  void marker(std::string_view marker, ChannelSink& sink) override {
    if (marker == kEndOfMessage) {
      end(OutputEnd::EndOfTurn, sink);
    } else if (marker != kSep) {
      release_header(sink);
      // The marker itself need not live on.
      header_marker_ = marker == kOpen ? kOpen : kClose;
      if (!may_become_element()) release_header(sink);
    } else if (header_marker_.empty()) {
      body(kSep, sink);
    } else {
      element(sink);
    }
  }

  void end(OutputEnd end, ChannelSink& sink) override {
    if (end == OutputEnd::EndOfTurn) {
      if (is_in_call()) bad_call("the turn ended within the call", sink);
      place_ = Place::Done;
    }
    header_marker_ = "";
  }

  Channel channel() const override {
    if (place_ == Place::Think) return Channel::Reasoning;
    return is_in_call() ? Channel::Call : Channel::Answer;
  }

 private:
  enum class Place : uint8_t { Think, Response, Between, Tools, Call, Value, Skipped, Done };

  bool is_in_call() const { return place_ == Place::Call || place_ == Place::Value; }
  bool is_open() const { return header_marker_ == kOpen; }
  void enter(Place place) {
    place_ = place;
    at_start_ = true;
  }

  void body(std::string_view text, ChannelSink& sink) {
    if (text.empty()) return;
    at_start_ = false;
    if (place_ == Place::Think) sink.text(Channel::Reasoning, text);
    if (place_ == Place::Response) sink.text(Channel::Answer, text);
    if (place_ == Place::Value) value_ += text;
    if (is_in_call()) raw_ += text;
  }

  // The tags that have a meaning where otherwise text stands.
  bool has_meaning_here(std::string_view tag, bool whole) const {
    const auto is = [&](std::string_view candidate) {
      return whole ? candidate == tag : candidate.starts_with(tag);
    };
    switch (place_) {
      case Place::Think:
        if (!is_open()) return is("think") || is("message");
        return is("response") || is("tools") || (at_start_ && is("think"));
      case Place::Response:
        if (!is_open()) return is("response") || is("message");
        return is("tools") || (at_start_ && (is("think") || is("response")));
      case Place::Value:
        return !is_open() && is(value_tag_);
      default:
        return true;
    }
  }
  bool may_become_element() const { return has_meaning_here(header_, false); }

  // A marker that began no element is text after all.
  void release_header(ChannelSink& sink) {
    if (header_marker_.empty()) return;
    const std::string literal = std::string(header_marker_) + header_;
    header_marker_ = "";
    header_.clear();
    body(literal, sink);
  }

  void element(ChannelSink& sink) {
    if (!has_meaning_here(header_, true)) {
      release_header(sink);
      body(kSep, sink);
      return;
    }
    const Header header(header_);
    element_ = std::string(header_marker_).append(header_).append(kSep);
    const bool opened = is_open();
    const bool is_part_of_call = opened ? header.tag != "call" : place_ == Place::Value;
    if (is_in_call() && is_part_of_call) raw_ += element_;
    header_marker_ = "";
    header_.clear();
    if (opened) {
      open(header, sink);
    } else {
      close(header.tag, sink);
    }
  }

  void open(const Header& header, ChannelSink& sink) {
    switch (place_) {
      case Place::Think:
      case Place::Response:
      case Place::Between:
        if (header.tag == "think") {
          enter(Place::Think);
        } else if (header.tag == "response") {
          enter(Place::Response);
        } else if (header.tag == "tools") {
          enter(Place::Tools);
        } else {
          skip(header.tag);
        }
        break;
      case Place::Tools:
        if (header.tag == "call") {
          begin_call(header);
        } else {
          skip(header.tag);
        }
        break;
      case Place::Call:
        if (header.tag == "call") {
          bad_call("the next call began within it", sink);
          begin_call(header);
        } else {
          value_tag_ = header.tag;
          value_key_ = header.attribute("key");
          value_type_ = header.attribute("type");
          value_.clear();
          enter(Place::Value);
        }
        break;
      case Place::Value:
      case Place::Skipped:
      case Place::Done:
        break;
    }
  }

  void close(std::string_view tag, ChannelSink& sink) {
    if (place_ == Place::Value) {
      finish_value();
      place_ = Place::Call;
    } else if (place_ == Place::Call && tag == "call") {
      finish_call(sink);
      place_ = Place::Tools;
    } else if (tag == "message") {
      end(OutputEnd::EndOfTurn, sink);
    } else if (place_ == Place::Call && tag == "tools") {
      bad_call("the call was not closed", sink);
      place_ = Place::Between;
    } else if (place_ == Place::Skipped) {
      if (tag == skipped_tag_) place_ = after_skipped_;
    } else if (place_ == Place::Think || place_ == Place::Response || tag == "tools") {
      place_ = Place::Between;
    }
  }

  // An element that this parser does not know.
  void skip(const std::string& tag) {
    after_skipped_ = place_ == Place::Tools ? Place::Tools : Place::Between;
    skipped_tag_ = tag;
    place_ = Place::Skipped;
  }

  void begin_call(const Header& header) {
    name_ = header.attribute("tool");
    arguments_ = {};
    json_.reset();
    raw_ = element_;
    enter(Place::Call);
  }

  void finish_value() {
    if (value_tag_ == "json") {
      json_ = value_;
      return;
    }
    JsonValue value{value_};
    if (value_type_ != "string") {
      // The model's mistake stays visible: a text that is not of its type is a string.
      if (Result<JsonValue> parsed = parse_json(value_, JsonDialect::Strict)) {
        value = *std::move(parsed);
      }
    }
    arguments_.set(value_key_, std::move(value));
  }

  void finish_call(ChannelSink& sink) {
    if (name_.empty()) {
      bad_call("the call has no tool", sink);
    } else if (!json_) {
      sink.call({"", name_, dump_json(arguments_.take(), JsonSpacing::Spaced, JsonKeys::AsGiven)});
    } else {
      const Result<JsonValue> parsed = parse_json(*json_, JsonDialect::Strict);
      if (parsed && parsed->as_object() != nullptr && arguments_.empty()) {
        sink.call({"", name_, *json_});
        return;
      }
      const std::string what = !parsed ? parsed.error().what : "the arguments are no JSON object";
      sink.call({"", name_, std::unexpected(BadArguments{what, *json_})});
    }
  }

  void bad_call(std::string what, ChannelSink& sink) {
    sink.call({"", name_, std::unexpected(BadArguments{std::move(what), std::exchange(raw_, {})})});
  }

  Place place_;
  bool at_start_ = true;  // of the element whose text comes now
  // The marker that may have begun an element, and the text behind it; empty: none has.
  std::string_view header_marker_;
  std::string header_;
  std::string element_;  // the last one, as the model wrote it

  std::string name_;  // of the call
  ObjectBuilder arguments_;
  std::optional<std::string> json_;  // the text of a `json` element
  std::string raw_;                  // all of the call
  std::string value_tag_, value_key_, value_type_, value_;

  std::string skipped_tag_;
  Place after_skipped_ = Place::Between;
};

}  // namespace

std::unique_ptr<ChannelGrammar> kimi_k3_grammar(ChannelStart start) {
  return std::make_unique<Grammar>(start);
}

}  // namespace deltafin::text
