#include "text/chat/channel_parser.h"

#include <span>

#include "text/chat/kimi_k2_channels.h"
#include "text/chat/kimi_k3_channels.h"
#include "text/chat/qwen_channels.h"

namespace deltafin::text {

namespace {

std::vector<std::string_view> markers_of(const ChannelSetup& setup) {
  std::span<const std::string_view> fixed = kQwenMarkers;
  if (setup.format == ChannelFormat::KimiK3) fixed = kKimiK3Markers;
  if (setup.format == ChannelFormat::KimiK2) fixed = kKimiK2Markers;
  std::vector<std::string_view> markers(fixed.begin(), fixed.end());
  if (setup.format == ChannelFormat::Qwen35 && !setup.tools.empty()) {
    markers.push_back(kQwenFunctionMarker);
  }
  return markers;
}

std::unique_ptr<ChannelGrammar> grammar_of(const ChannelSetup& setup) {
  switch (setup.format) {
    case ChannelFormat::KimiK3:
      return kimi_k3_grammar(setup.start);
    case ChannelFormat::KimiK2:
      return kimi_k2_grammar(setup.start);
    case ChannelFormat::Qwen3:
      return qwen_grammar(setup.start, QwenCalls::Json, ToolSchemas(setup.tools));
    case ChannelFormat::Qwen35:
      break;
  }
  return qwen_grammar(setup.start, QwenCalls::Elements, ToolSchemas(setup.tools));
}

void feed(MarkerScanner& scanner, std::string_view text, ChannelGrammar& grammar,
          ChannelSink& sink) {
  for (const MarkerScanner::Piece& piece : scanner.push(text)) {
    if (piece.is_marker) {
      grammar.marker(piece.text, sink);
    } else {
      grammar.text(piece.text, sink);
    }
  }
}

void finish_grammar(MarkerScanner& scanner, OutputEnd end, ChannelGrammar& grammar,
                    ChannelSink& sink) {
  const std::string held = scanner.take_held();
  if (end == OutputEnd::EndOfTurn) grammar.text(held, sink);
  grammar.end(end, sink);
}

}  // namespace

TextChannels::TextChannels(const ChannelSetup& setup)
    : grammar_(grammar_of(setup)), scanner_(markers_of(setup)) {}

std::vector<ChannelEvent> TextChannels::push(std::string_view text) {
  ChannelSink sink;
  feed(scanner_, text, *grammar_, sink);
  return sink.take();
}

std::vector<ChannelEvent> TextChannels::finish(OutputEnd end) {
  ChannelSink sink;
  finish_grammar(scanner_, end, *grammar_, sink);
  return sink.take();
}

TokenChannels::TokenChannels(const Tokenizer& tokenizer, std::unique_ptr<ChannelGrammar> grammar,
                             std::unordered_map<TokenId, std::string_view> ids,
                             MarkerScanner scanner)
    : tokenizer_(&tokenizer),
      grammar_(std::move(grammar)),
      ids_(std::move(ids)),
      scanner_(std::move(scanner)) {}

Result<TokenChannels> TokenChannels::create(const Tokenizer& tokenizer, const ChannelSetup& setup) {
  std::unordered_map<TokenId, std::string_view> ids;
  std::vector<std::string_view> spelled;
  for (const std::string_view marker : markers_of(setup)) {
    TRY(const std::vector<TokenId> encoded, tokenizer.encode(marker, SpecialTokens::Parse));
    // An ordinary token that spells a marker is no marker's token.
    TRY(const std::vector<TokenId> as_text, tokenizer.encode(marker, SpecialTokens::AsText));
    if (encoded.size() == 1 && encoded != as_text) {
      ids.emplace(encoded[0], marker);
    } else {
      spelled.push_back(marker);
    }
  }
  return TokenChannels(tokenizer, grammar_of(setup), std::move(ids),
                       MarkerScanner(std::move(spelled)));
}

Result<std::vector<ChannelEvent>> TokenChannels::push(TokenId id) {
  ChannelSink sink;
  if (const auto marker = ids_.find(id); marker != ids_.end()) {
    // A token ends what was held back: bytes that no longer become a code point, text that no
    // longer becomes a marker.
    feed(scanner_, decoder_.finish(), *grammar_, sink);
    grammar_->text(scanner_.take_held(), sink);
    grammar_->marker(marker->second, sink);
  } else {
    TRY(const std::string_view bytes, tokenizer_->bytes_of(id));
    feed(scanner_, decoder_.push(bytes), *grammar_, sink);
  }
  return sink.take();
}

std::vector<ChannelEvent> TokenChannels::finish(OutputEnd end) {
  ChannelSink sink;
  // A code point that was cut off is no text.
  const std::string rest = decoder_.finish();
  if (end == OutputEnd::EndOfTurn) feed(scanner_, rest, *grammar_, sink);
  finish_grammar(scanner_, end, *grammar_, sink);
  return sink.take();
}

}  // namespace deltafin::text
