#include "cli/run_listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/units.h"

namespace deltafin::cli {

namespace {

// Enough for a progress bar elsewhere, little enough for a log.
constexpr std::chrono::nanoseconds kProgressEventEvery = std::chrono::milliseconds(250);

// "8,962 tokens, layer 3 of 93" for a prompt in one pass, else "tokens 513-1,024 of 8,962, layer
// ...".
std::string describe(const engine::PrefillProgress& progress) {
  const std::string total = with_separators(progress.rows_total);
  const std::string rows =
      progress.rows_in_pass == progress.rows_total
          ? fmt::format("{} {}", total, progress.rows_total == 1 ? "token" : "tokens")
          : fmt::format("tokens {}-{} of {}", with_separators(progress.rows_done + 1),
                        with_separators(progress.rows_done + progress.rows_in_pass), total);
  return fmt::format("{}, layer {} of {}", rows, progress.layers_done, progress.layer_count);
}

}  // namespace

RunListener::RunListener(const Wiring& wiring)
    : wiring_(wiring),
      start_(wiring.engine.clock().now()),
      last_progress_event_(start_),
      meter_("prefill", style_of_standard_error(), wiring.engine.clock(), write_to_standard_error),
      token_text_(wiring.tokenizer) {}

void RunListener::on_prefill(const engine::PrefillProgress& progress) {
  prompt_count_ = progress.rows_total;
  meter_.update(progress.fraction(), describe(progress));
  const std::chrono::nanoseconds now = wiring_.engine.clock().now();
  if (!wiring_.events.is_wanted() || now - last_progress_event_ < kProgressEventEvery) return;
  last_progress_event_ = now;
  wiring_.events.write(prefill_progress_event(progress, elapsed()));
  if (!wiring_.events.status()) wiring_.cancel.cancel();
}

void RunListener::note_prefill_done() {
  meter_.finish();
  after_prefill_ = wiring_.engine.snapshot();
  wiring_.events.write(prefill_done_event(prompt_count_, elapsed()));
}

void RunListener::emit(const std::string& text) {
  all_text_ += text;
  if (wiring_.output != nullptr) wiring_.output->write(text);
}

std::string RunListener::text_of(TokenId token) {
  return wiring_.chat != nullptr ? wiring_.chat->push(token) : token_text_.push(token);
}

void RunListener::on_token(TokenId token, std::span<const float> logits) {
  if (!after_prefill_) note_prefill_done();
  if (wiring_.digest != nullptr) wiring_.digest->add(logits);
  TokenEvent event{.index = token_count_, .id = token, .text = std::nullopt};
  event.is_stop = std::ranges::find(wiring_.stop_tokens, token) != wiring_.stop_tokens.end();
  if (event.is_stop) {
    stop_token_ = token;
    if (wiring_.tokenizer != nullptr) event.text = "";
  } else {
    ++token_count_;
    const std::string text = text_of(token);
    emit(text);
    if (wiring_.tokenizer != nullptr) event.text = text;
  }
  if (wiring_.events.is_wanted()) wiring_.events.write(to_json(event, elapsed()));
  const bool output_open = wiring_.output == nullptr || wiring_.output->is_open();
  if (!output_open || !wiring_.events.status()) wiring_.cancel.cancel();
}

void RunListener::finish() {
  meter_.finish();
  if (wiring_.chat == nullptr) {
    emit(token_text_.finish());
  } else {
    emit(wiring_.chat->finish(stop_token_ ? text::OutputEnd::EndOfTurn : text::OutputEnd::CutOff));
  }
  if (wiring_.output != nullptr) wiring_.output->finish_line();
}

}  // namespace deltafin::cli
