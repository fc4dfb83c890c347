#include "cli/chat_timeline.h"

#include <fmt/format.h>

#include <utility>

namespace deltafin::cli {

using engine::GenerateRequest;
using engine::GenerationResult;
using engine::StopReason;

namespace {

std::vector<TokenId> part_of(const std::vector<TokenId>& ids, uint64_t begin, uint64_t end) {
  return {ids.begin() + static_cast<ptrdiff_t>(begin), ids.begin() + static_cast<ptrdiff_t>(end)};
}

}  // namespace

void TurnCost::add(const TurnCost& other) {
  reused += other.reused;
  read += other.read;
  read_time += other.read_time;
  decode_time += other.decode_time;
  generated += other.generated;
  decode_passes += other.decode_passes;
}

Result<GenerationResult> ChatTimeline::answer(const text::TurnPrompt& prompt,
                                              GenerateRequest request,
                                              engine::GenerationListener& listener,
                                              const CancelToken& cancel) {
  engine::Sequence before = now_.fork();
  std::optional<engine::Sequence> border_before =
      border_ ? std::optional(border_->fork()) : std::nullopt;
  TurnCost cost;
  Result<GenerationResult> result = compute(prompt, std::move(request), listener, cancel, cost);
  const bool is_turn =
      result && (!result->tokens.empty() || result->reason == StopReason::StopToken);
  if (!is_turn) {
    now_ = std::move(before);
    border_ = std::move(border_before);
    return result;
  }
  cost.generated = result->tokens.size();
  next_ = result->next;
  last_turn_ = cost;
  all_turns_.add(cost);
  return result;
}

Result<GenerationResult> ChatTimeline::compute(const text::TurnPrompt& prompt,
                                               GenerateRequest request,
                                               engine::GenerationListener& listener,
                                               const CancelToken& cancel, TurnCost& cost) {
  const std::vector<TokenId>& ids = prompt.ids;
  const ReuseFrom from =
      choose_reuse(ids, now_.tokens(), border_ ? border_->tokens() : std::vector<TokenId>());
  if (from == ReuseFrom::Border) now_ = border_->fork();
  if (from == ReuseFrom::Nothing) now_ = engine_.new_sequence();
  cost.reused = now_.position_count();
  cost.read = ids.size() - cost.reused;

  const uint64_t max_tokens = request.max_tokens;
  std::chrono::nanoseconds read_time{0};
  if (prompt.lasting > cost.reused) {
    request.prompt = part_of(ids, cost.reused, prompt.lasting);
    request.max_tokens = 0;
    TRY(GenerationResult at_border, engine::generate(engine_, now_, request, listener, cancel));
    if (at_border.reason == StopReason::Interrupted) return at_border;
    border_ = now_.fork();
    read_time = at_border.prefill_time;
    request.logits = std::move(at_border.next.logits);
  }
  request.prompt = part_of(ids, now_.position_count(), ids.size());
  request.max_tokens = max_tokens;
  TRY(GenerationResult result, engine::generate(engine_, now_, request, listener, cancel));
  cost.read_time = read_time + result.prefill_time;
  cost.decode_time = result.decode_time;
  cost.decode_passes = result.decode_passes;
  return result;
}

void ChatTimeline::clear() {
  now_ = engine_.new_sequence();
  border_.reset();
  next_ = {};
  last_turn_ = {};
}

Status ChatTimeline::save(PublishedFile& file, const state::SnapshotOwner& owner) const {
  TRY_STATUS(
      state::write_snapshot(owner,
                            {.state = now_.state(),
                             .tokens = now_.tokens(),
                             .waiting = next_.waiting,
                             .logits = next_.logits},
                            [&](std::span<const std::byte> bytes) { return file.append(bytes); }));
  return file.publish();
}

Status ChatTimeline::load(const io::Storage& storage, const std::string& path,
                          const state::SnapshotOwner& owner, uint64_t context,
                          const CancelToken& cancel) {
  TRY(const std::unique_ptr<io::File> file, storage.open(path));
  TRY(const state::SnapshotCounts counts, state::check_snapshot(*file, owner));
  if (counts.tokens > context)
    return fail(ErrorCode::Usage,
                fmt::format("{} has {} tokens, and --context allows {}\n  start with a larger "
                            "--context",
                            path, counts.tokens, context));
  TRY(state::Snapshot snapshot, state::read_snapshot(*file, owner, engine_.state_layout(), cancel));
  clear();
  now_ = engine::Sequence(std::move(snapshot.tokens), std::move(snapshot.state));
  next_ = {std::move(snapshot.waiting), std::move(snapshot.logits)};
  return {};
}

}  // namespace deltafin::cli
