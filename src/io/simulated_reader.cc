#include <algorithm>
#include <array>
#include <deque>
#include <vector>

#include "base/check.h"
#include "base/philox.h"
#include "io/retry.h"
#include "io/simulated.h"

namespace deltafin::io {

namespace {

using std::chrono::nanoseconds;

class SimulatedReader final : public Reader {
 public:
  struct Inbox {
    std::deque<ReadCompletion> completions;
  };

  SimulatedReader(const SimulatedReaderOptions& options, SimulatedClock& clock)
      : options_(options), clock_(clock), random_(options.seed) {
    CHECK(options.in_flight_count > 0);
    CHECK(options.delay_min <= options.delay_max);
  }
  ~SimulatedReader() override { CHECK(channel_count_ == 0); }

  std::unique_ptr<ReadChannel> open_channel(ReadPriority priority) override;
  ReaderCounters snapshot() const override { return counters_; }
  const char* name() const override { return "simulated"; }

  void submit(ReadPriority priority, Inbox& inbox, std::span<const ReadRequest> requests);
  void wait(Inbox& inbox);
  void let_time_pass();
  void withdraw(ReadPriority priority, Inbox& inbox);
  void cancel(ReadPriority priority, Inbox& inbox);
  void close(ReadPriority priority, Inbox& inbox);

 private:
  struct Job {
    Inbox* inbox = nullptr;
    ReadRequest request;
    nanoseconds finish{0};  // once started
  };

  nanoseconds draw_delay();
  void start_what_fits();
  void finish_next();
  std::vector<Job>::iterator next_to_finish();

  const SimulatedReaderOptions options_;
  SimulatedClock& clock_;
  Random random_;
  std::array<std::deque<Job>, kReadPriorityCount> queues_;
  std::vector<Job> in_flight_;  // in the order of their start
  uint64_t in_flight_bytes_ = 0;
  size_t channel_count_ = 0;
  ReaderCounters counters_;
};

class SimulatedChannel final : public ReadChannel {
 public:
  SimulatedChannel(SimulatedReader& reader, ReadPriority priority)
      : reader_(reader), priority_(priority) {}
  ~SimulatedChannel() override { reader_.close(priority_, inbox_); }

  void submit(std::span<const ReadRequest> requests) override {
    reader_.submit(priority_, inbox_, requests);
    outstanding_count_ += requests.size();
  }

  std::optional<ReadCompletion> wait() override {
    if (outstanding_count_ == 0) return std::nullopt;
    if (inbox_.completions.empty()) reader_.wait(inbox_);
    return take();
  }

  std::optional<ReadCompletion> poll() override {
    if (outstanding_count_ == 0) return std::nullopt;
    reader_.let_time_pass();
    if (inbox_.completions.empty()) return std::nullopt;
    return take();
  }

  void withdraw() override { reader_.withdraw(priority_, inbox_); }

  void cancel() override {
    reader_.cancel(priority_, inbox_);
    outstanding_count_ = 0;
  }

  size_t outstanding() const override { return outstanding_count_; }

 private:
  ReadCompletion take() {
    --outstanding_count_;
    ReadCompletion completion = std::move(inbox_.completions.front());
    inbox_.completions.pop_front();
    return completion;
  }

  SimulatedReader& reader_;
  const ReadPriority priority_;
  SimulatedReader::Inbox inbox_;
  size_t outstanding_count_ = 0;
};

std::unique_ptr<ReadChannel> SimulatedReader::open_channel(ReadPriority priority) {
  ++channel_count_;
  return std::make_unique<SimulatedChannel>(*this, priority);
}

void SimulatedReader::submit(ReadPriority priority, Inbox& inbox,
                             std::span<const ReadRequest> requests) {
  for (const ReadRequest& request : requests) {
    CHECK(request.file != nullptr);
    queues_[size_t(priority)].push_back({&inbox, request, {}});
  }
  start_what_fits();
}

void SimulatedReader::wait(Inbox& inbox) {
  while (inbox.completions.empty()) finish_next();
}

void SimulatedReader::let_time_pass() {
  // Less than a read takes on average, so that a polling caller meets both answers.
  const uint64_t step_max = uint64_t(options_.delay_max.count()) / 2;
  const nanoseconds until = clock_.now() + nanoseconds(random_.below(step_max + 1));
  while (!in_flight_.empty() && next_to_finish()->finish <= until) finish_next();
  clock_.advance(until - clock_.now());
}

void SimulatedReader::withdraw(ReadPriority priority, Inbox& inbox) {
  counters_.cancelled += std::erase_if(queues_[size_t(priority)], [&](const Job& job) {
    if (job.inbox != &inbox) return false;
    inbox.completions.push_back(
        {job.request.tag, fail(ErrorCode::Cancelled, "the read was withdrawn")});
    return true;
  });
  start_what_fits();
}

void SimulatedReader::cancel(ReadPriority priority, Inbox& inbox) {
  withdraw(priority, inbox);
  const auto ours = [&](const Job& job) { return job.inbox == &inbox; };
  while (std::ranges::any_of(in_flight_, ours)) finish_next();
  inbox.completions.clear();
}

void SimulatedReader::close(ReadPriority priority, Inbox& inbox) {
  cancel(priority, inbox);
  --channel_count_;
}

nanoseconds SimulatedReader::draw_delay() {
  const uint64_t range = uint64_t((options_.delay_max - options_.delay_min).count()) + 1;
  return options_.delay_min + nanoseconds(random_.below(range));
}

void SimulatedReader::start_what_fits() {
  for (std::deque<Job>& queue : queues_) {
    while (!queue.empty()) {
      const std::span<std::byte> into = queue.front().request.into;
      const bool fits = in_flight_.size() < options_.in_flight_count &&
                        in_flight_bytes_ + into.size() <= options_.in_flight_bytes;
      if (!fits && !in_flight_.empty()) return;  // nothing less urgent may overtake it
      std::ranges::fill(into, std::byte{0xFF});
      in_flight_bytes_ += into.size();
      in_flight_.push_back(queue.front());
      in_flight_.back().finish = clock_.now() + draw_delay();
      queue.pop_front();
    }
  }
}

std::vector<SimulatedReader::Job>::iterator SimulatedReader::next_to_finish() {
  return std::ranges::min_element(in_flight_, {}, &Job::finish);
}

// Moves the clock to the next finish, reads, delivers, and starts what fits into the room.
void SimulatedReader::finish_next() {
  CHECK(!in_flight_.empty());
  const auto next = next_to_finish();
  const Job job = *next;
  in_flight_.erase(next);
  const ReadRequest& request = job.request;
  in_flight_bytes_ -= request.into.size();
  // Somebody else may have moved the clock beyond the finish: then it is simply late.
  clock_.advance(std::max(job.finish - clock_.now(), nanoseconds(0)));

  ReadOutcome outcome = read_with_retry({*request.file, request.offset, request.into});
  counters_.reads += 1;
  counters_.retries += outcome.retries;
  if (outcome.status) {
    counters_.bytes += request.into.size();
  } else {
    counters_.failures += 1;
    std::ranges::fill(request.into, std::byte{0xFF});
  }
  job.inbox->completions.push_back({request.tag, std::move(outcome.status)});
  start_what_fits();
}

}  // namespace

std::unique_ptr<Reader> make_simulated_reader(const SimulatedReaderOptions& options,
                                              SimulatedClock& clock) {
  return std::make_unique<SimulatedReader>(options, clock);
}

}  // namespace deltafin::io
