// What a model's output consists of: reasoning, an answer, calls of tools.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deltafin::text {

enum class Channel : uint8_t { Reasoning, Answer, Call };

// Arguments that are no JSON object, or a call that cannot be read.
struct BadArguments {
  std::string what;  // why, in words
  std::string raw;   // what the model wrote
  bool operator==(const BadArguments&) const = default;
};

struct ParsedCall {
  std::string id;    // as the model wrote it (Kimi K2); empty: the format has none
  std::string name;  // empty when it could not be read
  // The text of one JSON object, or why there is none.
  std::expected<std::string, BadArguments> arguments;
  bool operator==(const ParsedCall&) const = default;
};

struct ChannelEvent {
  Channel channel = Channel::Answer;
  std::string text;                // more of the reasoning or the answer
  std::optional<ParsedCall> call;  // a whole call; text is empty then
  bool operator==(const ChannelEvent&) const = default;
};

// Gathers events; text of one channel that comes in a row is one event.
class ChannelSink {
 public:
  void text(Channel channel, std::string_view text) {
    if (text.empty()) return;
    if (events_.empty() || events_.back().channel != channel || events_.back().call) {
      events_.push_back({channel, "", std::nullopt});
    }
    events_.back().text += text;
  }
  void call(ParsedCall call) { events_.push_back({Channel::Call, "", std::move(call)}); }
  std::vector<ChannelEvent> take() { return std::exchange(events_, {}); }

 private:
  std::vector<ChannelEvent> events_;
};

// Where the model's output begins, which depends on how the prompt ended.
enum class ChannelStart : uint8_t { Reasoning, Answer };

enum class OutputEnd : uint8_t {
  EndOfTurn,  // the model ended its turn
  CutOff,     // the limit of tokens, a stop string, a cancelled request
};

// The structure of one family's output, fed with text and markers in their order. A marker is the
// whole spelling of one of the format's markers(); text never is. Implementations are linear in
// what they are fed and do not depend on how text is cut.
class ChannelGrammar {
 public:
  virtual ~ChannelGrammar() = default;
  virtual void text(std::string_view text, ChannelSink& sink) = 0;
  virtual void marker(std::string_view marker, ChannelSink& sink) = 0;
  // Nothing may follow. At CutOff a call that is not complete is dropped; at EndOfTurn it becomes
  // BadArguments.
  virtual void end(OutputEnd end, ChannelSink& sink) = 0;
  // The channel that the last text belongs to.
  virtual Channel channel() const = 0;
};

}  // namespace deltafin::text
