#include "engine/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "engine/fair_shares.h"
#include "engine/kept_states.h"
#include "engine/pass.h"
#include "engine/prefill_pass.h"
#include "engine/scheduled_job.h"
#include "engine/state_directory.h"

namespace deltafin::engine {

namespace {

// While there is other work, saving states takes at most one part in so many of the time.
constexpr int kSavingShare = 10;

Status check_request(const Engine& engine, const ScheduledRequest& request, uint64_t context) {
  if (request.prompt.empty())
    return fail(ErrorCode::Usage, "the prompt has no token: give at least one character or id");
  if (request.answers == 0)
    return fail(ErrorCode::Usage, "0 answers are asked for; expected at least 1");
  TRY_STATUS(engine.check_tokens(request.prompt));
  if (request.prompt.size() > context)
    return fail(ErrorCode::Usage, fmt::format("the prompt has {} tokens, and the context {}",
                                              request.prompt.size(), context));
  return validate(request.sampling, engine.vocab_size());
}

}  // namespace

// Requests wait in arrivals_, which any thread fills, then in jobs_, in order of arrival; the first
// admitted_ of those are computed.
class Scheduler::Implementation {
 public:
  Implementation(Engine& engine, const SchedulerOptions& options)
      : engine_(engine), options_(options), kept_(options.kept_state_bytes) {
    CHECK(options.sequences > 0);
    const uint64_t declared = engine.contract().max_positions;
    context_ = options.context == 0 ? declared : std::min(options.context, declared);
  }

  Result<RequestId> submit(ScheduledRequest request, std::shared_ptr<RequestListener> listener);
  void cancel(RequestId id);
  bool step();
  SchedulerCounters snapshot();

 private:
  using JobPointer = std::shared_ptr<Job>;
  // An answer to be computed, and whose it is.
  struct Writing {
    Job* job;
    Answer* answer;
  };

  void take_arrivals();
  void end_cancelled();
  void forget_ended();
  void admit();
  const KeptState* find_in_memory(const Job& job);
  void begin(Job& job);
  void start_answers();
  void finish_answers(Job& job);
  void end(Job& job, const Status& status);
  bool save_a_state();
  bool may_save_while_busy() const {
    return engine_.clock().now() - saved_at_ >= (kSavingShare - 1) * saving_took_;
  }

  std::span<const JobPointer> admitted() const { return std::span(jobs_).first(admitted_); }
  uint64_t sequences_held() const;
  bool has_unread_prompts() const;
  size_t answer_count() const;
  std::vector<Writing> rows_of_next_pass() const;

  void prefill();
  size_t rows_wanted(const Job& job);
  std::vector<PrefillPass::Part> parts_of_next_pass();
  void begin_prefill();
  void finish_prefill();
  void prefill_failed(const std::vector<PrefillPass::Part>& parts, const Status& status);
  void decode(std::span<const Writing> rows);
  void decode_failed(std::span<const Writing> rows, const Status& status);

  // Runs `work`, which cancel() stops through `token` when all of `ids` are cancelled.
  template <class Work>
  Status run_cancellable(std::vector<RequestId> ids, CancelToken& token, const Work& work);
  bool all_cancelled() const;  // of the running ones; under the lock

  Engine& engine_;
  const SchedulerOptions options_;
  uint64_t context_ = 0;
  KeptStates kept_;
  std::vector<JobPointer> jobs_;
  size_t admitted_ = 0;
  std::unique_ptr<PrefillPass> prefill_;  // may be suspended; dropped before the jobs
  TimeShares shares_;
  std::chrono::nanoseconds saved_at_{0}, saving_took_{0};  // of the last state
  SchedulerCounters counters_;

  std::mutex mutex_;  // of everything below
  RequestId last_id_ = 0;
  std::vector<JobPointer> arrivals_;
  std::set<RequestId> alive_, cancelled_;
  std::vector<RequestId> running_;
  CancelToken* running_token_ = nullptr;
};

// ------------------------------------------------------------------------- from other threads ---

Result<RequestId> Scheduler::Implementation::submit(ScheduledRequest request,
                                                    std::shared_ptr<RequestListener> listener) {
  CHECK(listener != nullptr);
  TRY_STATUS(check_request(engine_, request, context_));
  const std::lock_guard lock(mutex_);
  const RequestId id = ++last_id_;
  arrivals_.push_back(std::make_shared<Job>(id, std::move(request), std::move(listener), context_));
  alive_.insert(id);
  return id;
}

void Scheduler::Implementation::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  if (!alive_.contains(id)) return;
  cancelled_.insert(id);
  if (running_token_ != nullptr && all_cancelled()) running_token_->cancel();
}

bool Scheduler::Implementation::all_cancelled() const {
  return std::ranges::all_of(running_, [&](RequestId id) { return cancelled_.contains(id); });
}

template <class Work>
Status Scheduler::Implementation::run_cancellable(std::vector<RequestId> ids, CancelToken& token,
                                                  const Work& work) {
  {
    const std::lock_guard lock(mutex_);
    running_ = std::move(ids);
    running_token_ = &token;
    if (all_cancelled()) token.cancel();
  }
  Status status = work();
  const std::lock_guard lock(mutex_);
  running_token_ = nullptr;
  return status;
}

// ------------------------------------------------------------------------- who comes and goes ---

void Scheduler::Implementation::take_arrivals() {
  const std::lock_guard lock(mutex_);
  jobs_.insert(jobs_.end(), arrivals_.begin(), arrivals_.end());
  arrivals_.clear();
}

void Scheduler::Implementation::end_cancelled() {
  std::set<RequestId> cancelled;
  {
    const std::lock_guard lock(mutex_);
    cancelled = cancelled_;
  }
  if (cancelled.empty()) return;
  for (const JobPointer& job : jobs_)
    if (!job->has_ended() && cancelled.contains(job->id()))
      end(*job, fail(ErrorCode::Cancelled, "stopped on request"));
}

void Scheduler::Implementation::end(Job& job, const Status& status) {
  // What was computed until now is worth keeping, whatever ended it.
  if (job.has_begun() && !job.prompt_is_read())
    kept_.keep(job.prompt(), job.after_prompt(), Lasting::OnDisk);
  for (const Answer& answer : job.answers())
    kept_.keep(answer.sequence, answer.continuation(), Lasting::OnDisk);
  {
    const std::lock_guard lock(mutex_);
    alive_.erase(job.id());
    cancelled_.erase(job.id());
  }
  job.end(status);
}

// A job that has ended keeps its place as long as a pass is open on its prompt.
void Scheduler::Implementation::forget_ended() {
  if (prefill_ && !prefill_->is_needed()) prefill_.reset();
  const auto is_gone = [&](const JobPointer& job) {
    return job->has_ended() && !(prefill_ && prefill_->has(*job));
  };
  admitted_ -= size_t(std::ranges::count_if(admitted(), is_gone));
  std::erase_if(jobs_, is_gone);
}

void Scheduler::Implementation::admit() {
  uint64_t wanted = 0;
  for (const JobPointer& job : admitted()) wanted += job->sequences_wanted();
  for (; admitted_ < jobs_.size() && wanted < options_.sequences; ++admitted_) {
    Job& job = *jobs_[admitted_];
    wanted += job.sequences_wanted();
    // One whose whole prompt is kept need not wait for the next prefill pass.
    if (rows_wanted(job) == 0) begin(job);
  }
}

// Null for a prompt that is scored, too: it is read from its beginning, for every row is wanted.
const KeptState* Scheduler::Implementation::find_in_memory(const Job& job) {
  return job.request().prompt_logits ? nullptr : kept_.find(job.request().prompt);
}

// From the longest state that is kept, in memory or on disk.
void Scheduler::Implementation::begin(Job& job) {
  const std::vector<TokenId>& prompt = job.request().prompt;
  const KeptState* kept = find_in_memory(job);
  std::optional<KeptState> loaded;
  if (options_.state_directory != nullptr && !job.request().prompt_logits)
    loaded = options_.state_directory->load(prompt,
                                            kept == nullptr ? 0 : kept->sequence.position_count());
  if (loaded) {
    kept_.keep(loaded->sequence, loaded->next, Lasting::InMemory);
    job.begin(std::move(loaded->sequence), std::move(loaded->next.logits));
  } else if (kept != nullptr) {
    job.begin(kept->sequence.fork(), kept->next.logits);
  } else {
    job.begin(engine_.new_sequence(), {});
  }
  counters_.prompt_tokens += prompt.size();
  counters_.cached_tokens += job.cached_tokens();
}

bool Scheduler::Implementation::save_a_state() {
  if (options_.state_directory == nullptr) return false;
  const KeptState* kept = kept_.take_to_be_saved();
  if (kept == nullptr) return false;
  const std::chrono::nanoseconds start = engine_.clock().now();
  options_.state_directory->save(*kept);
  saved_at_ = engine_.clock().now();
  saving_took_ = saved_at_ - start;
  return true;
}

uint64_t Scheduler::Implementation::sequences_held() const {
  uint64_t held = 0;
  for (const JobPointer& job : admitted()) held += job->sequences_held();
  return held;
}

void Scheduler::Implementation::start_answers() {
  for (const JobPointer& job : admitted()) {
    if (job->has_ended()) continue;
    while (job->has_unstarted_answers() && sequences_held() < options_.sequences) {
      job->start_answer(engine_.kernels());
      ++counters_.generated_tokens;
      finish_answers(*job);
    }
    if (job->is_complete()) end(*job, {});
  }
}

void Scheduler::Implementation::finish_answers(Job& job) {
  for (const Answer& answer : job.answers())
    if (answer.has_ended) kept_.keep(answer.sequence, answer.continuation(), Lasting::OnDisk);
  job.remove_ended_answers();
}

// ------------------------------------------------------------------------------------ prompts ---

bool Scheduler::Implementation::has_unread_prompts() const {
  return std::ranges::any_of(admitted(), [](const JobPointer& job) {
    return !job->has_ended() && !job->prompt_is_read();
  });
}

void Scheduler::Implementation::prefill() {
  if (!prefill_) begin_prefill();
  if (!prefill_) return;
  std::vector<RequestId> ids;
  for (const PrefillPass::Part& part : prefill_->parts()) ids.push_back(part.job->id());
  const std::chrono::nanoseconds start = engine_.clock().now();
  const Status status =
      run_cancellable(std::move(ids), prefill_->cancel(), [this] { return prefill_->advance(); });
  shares_.prefill_took(engine_.clock().now() - start);
  if (!status) {
    const std::vector<PrefillPass::Part> parts = prefill_->parts();
    prefill_.reset();
    prefill_failed(parts, status);
  } else if (prefill_->is_finished()) {
    finish_prefill();
  }
}

// How many rows it could use, as far as is known before it has begun.
size_t Scheduler::Implementation::rows_wanted(const Job& job) {
  if (job.has_begun()) return job.unread_stretch().size();
  const KeptState* kept = find_in_memory(job);
  return job.stretch_behind(kept == nullptr ? 0 : kept->sequence.position_count()).size();
}

std::vector<PrefillPass::Part> Scheduler::Implementation::parts_of_next_pass() {
  std::vector<JobPointer> unread;
  for (const JobPointer& job : admitted())
    if (!job->has_ended() && !job->prompt_is_read()) unread.push_back(job);
  const auto alone = std::ranges::find_if(unread, [](const JobPointer& job) { return job->alone; });
  if (alone != unread.end()) unread = {*alone};
  std::vector<size_t> wanted;
  for (const JobPointer& job : unread) wanted.push_back(rows_wanted(*job));
  // The rows of decode passes meanwhile are taken off: they are there at the same time.
  const size_t rows = engine_.prefill_rows() - std::min(answer_count(), engine_.prefill_rows() - 1);
  const std::vector<size_t> shares = share_rows(wanted, rows);
  std::vector<PrefillPass::Part> parts;
  for (size_t i = 0; i < unread.size(); ++i) {
    if (shares[i] == 0 && wanted[i] > 0) continue;
    // Not before its turn: what others read until then may have become a kept state.
    if (!unread[i]->has_begun()) begin(*unread[i]);
    const size_t row_count = std::min(shares[i], unread[i]->unread_stretch().size());
    if (row_count > 0) parts.push_back({.job = unread[i], .row_count = row_count});
  }
  return parts;
}

void Scheduler::Implementation::begin_prefill() {
  const std::vector<PrefillPass::Part> parts = parts_of_next_pass();
  if (parts.empty()) return;  // all of them were kept
  Result<std::unique_ptr<PrefillPass>> pass = PrefillPass::begin(engine_, parts);
  if (!pass) return prefill_failed(parts, std::unexpected(std::move(pass).error()));
  prefill_ = std::move(*pass);
  ++counters_.prefill_passes;
}

void Scheduler::Implementation::finish_prefill() {
  const std::unique_ptr<PrefillPass> pass = std::move(prefill_);
  for (size_t i = 0; i < pass->parts().size(); ++i) {
    if (!pass->commit(i)) continue;
    Job& job = *pass->parts()[i].job;
    job.alone = false;
    if (job.is_at_border()) kept_.keep(job.prompt(), job.after_prompt(), job.lasting());
  }
}

// Nobody is failed for what somebody else needs: each runs again by itself, and then it is its own
// error.
void Scheduler::Implementation::prefill_failed(const std::vector<PrefillPass::Part>& parts,
                                               const Status& status) {
  if (status.error().code == ErrorCode::Cancelled) return;  // its jobs end in the next step
  for (const PrefillPass::Part& part : parts) {
    if (part.job->has_ended()) continue;
    if (parts.size() == 1) {
      end(*part.job, status);
    } else {
      part.job->alone = true;
    }
  }
}

// ------------------------------------------------------------------------------------ answers ---

size_t Scheduler::Implementation::answer_count() const {
  size_t count = 0;
  for (const JobPointer& job : admitted()) count += job->answers().size();
  return count;
}

std::vector<Scheduler::Implementation::Writing> Scheduler::Implementation::rows_of_next_pass()
    const {
  std::vector<Writing> rows;
  for (const JobPointer& job : admitted()) {
    if (job->has_ended()) continue;
    for (Answer& answer : job->answers()) {
      rows.push_back({job.get(), &answer});
      if (answer.alone) return {rows.back()};
    }
  }
  if (rows.size() > engine_.prefill_rows()) {
    std::ranges::sort(rows, {}, [](const Writing& row) {
      return std::pair(row.answer->last_pass, row.answer->generated);
    });
    rows.resize(engine_.prefill_rows());
  }
  return rows;
}

void Scheduler::Implementation::decode(std::span<const Writing> rows) {
  std::vector<PassRequest> requests;
  std::vector<RequestId> ids;
  for (const Writing& row : rows) {
    requests.push_back({.sequence = &row.answer->sequence,
                        .tokens = std::span(&row.answer->next, 1),
                        .mode = PassMode::Prefill,
                        .logits = LogitsOf::LastRow});
    ids.push_back(row.job->id());
  }
  std::optional<Pass> pass;
  CancelToken token;
  const std::chrono::nanoseconds start = engine_.clock().now();
  const Status status = run_cancellable(std::move(ids), token, [&]() -> Status {
    TRY(Pass done, run_pass(engine_, requests, token));
    pass.emplace(std::move(done));
    return {};
  });
  const std::chrono::nanoseconds time = engine_.clock().now() - start;
  if (!status || prefill_ != nullptr || has_unread_prompts()) {
    shares_.decode_took(time, rows.size());
  } else {
    shares_.decode_took_alone(time, rows.size());
  }
  if (!status) return decode_failed(rows, status);
  ++counters_.decode_passes;
  counters_.generated_tokens += rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    Answer& answer = *rows[i].answer;
    pass->commit(i, 1);
    answer.alone = false;
    answer.last_pass = counters_.decode_passes;
    rows[i].job->accept(answer, pass->logits(i, 0));
  }
  for (const Writing& row : rows) {
    finish_answers(*row.job);
    if (!row.job->has_ended() && row.job->is_complete()) end(*row.job, {});
  }
}

void Scheduler::Implementation::decode_failed(std::span<const Writing> rows, const Status& status) {
  if (status.error().code == ErrorCode::Cancelled) return;  // its jobs end in the next step
  if (rows.size() == 1) return end(*rows[0].job, status);
  for (const Writing& row : rows) row.answer->alone = true;
}

// ------------------------------------------------------------------------------------------------

bool Scheduler::Implementation::step() {
  take_arrivals();
  end_cancelled();
  forget_ended();
  if (jobs_.empty()) return save_a_state();
  if (may_save_while_busy()) save_a_state();
  admit();
  start_answers();
  const std::vector<Writing> rows = rows_of_next_pass();
  const bool reads = prefill_ != nullptr || has_unread_prompts();
  if (rows.empty()) shares_.forget();
  if (!rows.empty() && (!reads || shares_.decode_is_due())) {
    decode(rows);
  } else if (reads) {
    prefill();
  }
  return true;
}

SchedulerCounters Scheduler::Implementation::snapshot() {
  SchedulerCounters counters = counters_;
  for (const JobPointer& job : admitted()) counters.running += job->has_ended() ? 0 : 1;
  for (const JobPointer& job : std::span(jobs_).subspan(admitted_))
    counters.waiting += job->has_ended() ? 0 : 1;
  counters.kept_states = kept_.count();
  counters.kept_state_bytes = kept_.bytes();
  const std::lock_guard lock(mutex_);
  counters.waiting += arrivals_.size();
  return counters;
}

Scheduler::Scheduler(Engine& engine, SchedulerOptions options)
    : implementation_(std::make_unique<Implementation>(engine, options)) {}
Scheduler::~Scheduler() = default;

Result<RequestId> Scheduler::submit(ScheduledRequest request,
                                    std::shared_ptr<RequestListener> listener) {
  return implementation_->submit(std::move(request), std::move(listener));
}
void Scheduler::cancel(RequestId id) { implementation_->cancel(id); }
bool Scheduler::step() { return implementation_->step(); }
SchedulerCounters Scheduler::snapshot() const { return implementation_->snapshot(); }

}  // namespace deltafin::engine
