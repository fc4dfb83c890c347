#include "serve/answer_text.h"

namespace deltafin::serve {

namespace {

// A matcher that knows how much it holds back.
class Stopper {
 public:
  explicit Stopper(const text::StopStrings& stops) : matcher_(stops) {}

  std::string push(const std::string& text) {
    std::string shown = matcher_.push(text);
    held_ += text.size();
    held_ -= shown.size();
    return shown;
  }
  std::string finish() {
    held_ = 0;
    return matcher_.finish();
  }
  bool stopped() const { return matcher_.stopped().has_value(); }
  bool holds_back() const { return held_ > 0; }

 private:
  text::StopMatcher matcher_;
  size_t held_ = 0;
};

class PlainText final : public AnswerText {
 public:
  PlainText(const text::Tokenizer& tokenizer, const text::StopStrings& stops)
      : tokenizer_(tokenizer), stopper_(stops) {}

  Result<TextPiece> push(TokenId token) override {
    TRY(const std::string_view bytes, tokenizer_.bytes_of(token));
    return TextPiece{.content = stopper_.push(decoder_.push(bytes))};
  }
  TextPiece finish(text::OutputEnd) override {
    std::string rest = stopper_.push(decoder_.finish());
    return {.content = rest + stopper_.finish()};
  }
  bool stopped() const override { return stopper_.stopped(); }
  bool holds_back() const override { return stopper_.holds_back(); }
  bool is_reasoning() const override { return false; }

 private:
  const text::Tokenizer& tokenizer_;
  text::StreamDecoder decoder_;
  Stopper stopper_;
};

class ChatText final : public AnswerText {
 public:
  ChatText(text::TokenChannels channels, const text::StopStrings& stops)
      : channels_(std::move(channels)), stopper_(stops) {}

  Result<TextPiece> push(TokenId token) override {
    TRY(const std::vector<text::ChannelEvent> events, channels_.push(token));
    return take(events);
  }
  TextPiece finish(text::OutputEnd end) override {
    TextPiece piece = take(channels_.finish(end));
    piece.content += stopper_.finish();
    return piece;
  }
  bool stopped() const override { return stopper_.stopped(); }
  bool holds_back() const override { return stopper_.holds_back(); }
  bool is_reasoning() const override { return channels_.channel() == text::Channel::Reasoning; }

 private:
  TextPiece take(const std::vector<text::ChannelEvent>& events) {
    TextPiece piece;
    for (const text::ChannelEvent& event : events) {
      if (stopper_.stopped()) break;
      if (event.call) {
        piece.calls.push_back(*event.call);
      } else if (event.channel == text::Channel::Reasoning) {
        piece.reasoning += event.text;
      } else {
        piece.content += stopper_.push(event.text);
      }
    }
    return piece;
  }

  text::TokenChannels channels_;
  Stopper stopper_;
};

}  // namespace

std::unique_ptr<AnswerText> make_plain_text(const text::Tokenizer& tokenizer,
                                            const text::StopStrings& stops) {
  return std::make_unique<PlainText>(tokenizer, stops);
}

Result<std::unique_ptr<AnswerText>> make_chat_text(const text::Tokenizer& tokenizer,
                                                   const text::ChannelSetup& setup,
                                                   const text::StopStrings& stops) {
  TRY(text::TokenChannels channels, text::TokenChannels::create(tokenizer, setup));
  return std::make_unique<ChatText>(std::move(channels), stops);
}

}  // namespace deltafin::serve
