#include "io/queued_reader.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace deltafin::io {

namespace {

// Below this, dropping pages costs more than they do.
constexpr uint64_t kDropBytesLeast = 1ull << 20;

class QueuedChannel final : public ReadChannel {
 public:
  QueuedChannel(QueuedReader& reader, ReadPriority priority)
      : reader_(reader), priority_(priority) {}
  ~QueuedChannel() override { reader_.close(priority_, inbox_); }

  void submit(std::span<const ReadRequest> requests) override {
    reader_.submit(priority_, inbox_, requests);
    outstanding_count_ += requests.size();
  }

  std::optional<ReadCompletion> wait() override {
    if (outstanding_count_ == 0) return std::nullopt;
    --outstanding_count_;
    return reader_.wait(inbox_);
  }

  std::optional<ReadCompletion> poll() override {
    if (outstanding_count_ == 0) return std::nullopt;
    std::optional<ReadCompletion> completion = reader_.poll(inbox_);
    if (completion) --outstanding_count_;
    return completion;
  }

  void withdraw() override { reader_.withdraw(priority_, inbox_); }

  void cancel() override {
    reader_.cancel(priority_, inbox_);
    outstanding_count_ = 0;
  }

  size_t outstanding() const override { return outstanding_count_; }

 private:
  QueuedReader& reader_;
  const ReadPriority priority_;
  QueuedReader::Inbox inbox_;  // guarded by the reader's mutex
  size_t outstanding_count_ = 0;
};

ReadCompletion take_front(QueuedReader::Inbox& inbox) {
  ReadCompletion completion = std::move(inbox.completions.front());
  inbox.completions.pop_front();
  return completion;
}

}  // namespace

QueuedReader::~QueuedReader() {
  const std::lock_guard lock(mutex_);
  CHECK(channel_count_ == 0);
}

std::unique_ptr<ReadChannel> QueuedReader::open_channel(ReadPriority priority) {
  {
    const std::lock_guard lock(mutex_);
    ++channel_count_;
  }
  return std::make_unique<QueuedChannel>(*this, priority);
}

ReaderCounters QueuedReader::snapshot() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

void QueuedReader::submit(ReadPriority priority, Inbox& inbox,
                          std::span<const ReadRequest> requests) {
  {
    const std::lock_guard lock(mutex_);
    for (const ReadRequest& request : requests) {
      CHECK(request.file != nullptr);
      Job& job = queues_[size_t(priority)].emplace_back();
      job.inbox = &inbox;
      job.priority = priority;
      job.request = request;
    }
  }
  wake();
}

ReadCompletion QueuedReader::wait(Inbox& inbox) {
  std::unique_lock lock(mutex_);
  while (inbox.completions.empty()) wait_for(inbox, lock);
  return take_front(inbox);
}

void QueuedReader::wait_for(Inbox& inbox, std::unique_lock<std::mutex>& lock) {
  inbox.arrived.wait(lock);
}

std::optional<ReadCompletion> QueuedReader::poll(Inbox& inbox) {
  std::unique_lock lock(mutex_);
  if (inbox.completions.empty()) help(lock);
  if (inbox.completions.empty()) return std::nullopt;
  return take_front(inbox);
}

void QueuedReader::withdraw(ReadPriority priority, Inbox& inbox) {
  bool found = false;
  {
    const std::lock_guard lock(mutex_);
    Queue& queue = queues_[size_t(priority)];
    for (auto next = queue.begin(); next != queue.end();) {
      const auto job = next++;
      if (job->inbox != &inbox) continue;
      job->withdrawn = found = true;
      handed_out_.splice(handed_out_.end(), queue, job);
      if (job->pieces_in_flight == 0) retire(job);
    }
  }
  if (found) wake();  // what waited behind a large withdrawn request may fit now
}

void QueuedReader::cancel(ReadPriority priority, Inbox& inbox) {
  withdraw(priority, inbox);
  std::unique_lock lock(mutex_);
  inbox.arrived.wait(lock, [&] { return inbox.pieces_in_flight == 0; });
  inbox.completions.clear();
}

void QueuedReader::close(ReadPriority priority, Inbox& inbox) {
  cancel(priority, inbox);
  const std::lock_guard lock(mutex_);
  --channel_count_;
}

const QueuedReader::Queue* QueuedReader::most_urgent_queue() const {
  for (const Queue& queue : queues_)
    if (!queue.empty()) return &queue;
  return nullptr;
}

uint64_t QueuedReader::next_piece_size(const Job& job) {
  const uint64_t left = job.request.into.size() - job.handed_out;
  if (job.priority != ReadPriority::Hint || left <= kHintPieceBytes) return left;
  // Pieces meet at borders of direct reads, so that none writes into another.
  const uint64_t begin = job.request.offset + job.handed_out;
  return kHintPieceBytes - begin % kDirectAlignment;
}

bool QueuedReader::has_room_for(const Job& job) const {
  if (in_flight_count_ == 0) return true;  // one request larger than the bound may run alone
  const uint64_t size = next_piece_size(job);
  if (in_flight_count_ >= bounds_.in_flight_count) return false;
  if (job.priority == ReadPriority::Hint && hint_bytes_in_flight_ + size > kHintBytesInFlight)
    return false;
  return size <= bounds_.in_flight_bytes && in_flight_bytes_ <= bounds_.in_flight_bytes - size;
}

// Nothing less urgent overtakes what does not fit yet.
bool QueuedReader::can_start() const {
  const Queue* queue = most_urgent_queue();
  return queue != nullptr && has_room_for(queue->front());
}

QueuedReader::Piece QueuedReader::start_next() {
  Queue& queue = queues_[size_t(most_urgent_queue()->front().priority)];
  const auto job = queue.begin();
  const uint64_t size = next_piece_size(*job);
  const Piece piece{job, job->request.offset + job->handed_out,
                    job->request.into.subspan(job->handed_out, size)};
  job->handed_out += size;
  ++job->pieces_in_flight;
  ++job->inbox->pieces_in_flight;
  ++in_flight_count_;
  in_flight_bytes_ += size;
  if (job->priority == ReadPriority::Hint) hint_bytes_in_flight_ += size;
  if (job->handed_out == job->request.into.size())
    handed_out_.splice(handed_out_.end(), queue, job);
  return piece;
}

void QueuedReader::finish(const Piece& piece, ReadOutcome outcome) {
  Job& job = *piece.job;
  Inbox& inbox = *job.inbox;
  const uint64_t size = piece.into.size();
  --in_flight_count_;
  in_flight_bytes_ -= size;
  if (job.priority == ReadPriority::Hint) hint_bytes_in_flight_ -= size;
  --job.pieces_in_flight;
  --inbox.pieces_in_flight;
  counters_.retries += outcome.retries;
  job.direct_bytes += outcome.direct_bytes;
  if (!outcome.status && job.status) {
    job.status = std::move(outcome.status);
    const bool is_queued = !job.withdrawn && job.handed_out < job.request.into.size();
    if (is_queued) {  // one bad piece is enough
      job.handed_out = job.request.into.size();
      handed_out_.splice(handed_out_.end(), queues_[size_t(job.priority)], piece.job);
    }
  }
  const bool ended = job.withdrawn || job.handed_out == job.request.into.size();
  if (job.pieces_in_flight == 0 && ended) retire(piece.job);
  // Under the lock: once it is released, the channel may be gone.
  inbox.arrived.notify_one();
}

// Counts, completes and forgets a job whose last piece has ended.
void QueuedReader::retire(Queue::iterator job) {
  if (job->withdrawn) {
    ++counters_.cancelled;
    job->status = fail(ErrorCode::Cancelled, "the read was withdrawn");
  } else {
    ++counters_.reads;
    if (job->status) {
      counters_.bytes += job->request.into.size();
      counters_.direct_bytes += job->direct_bytes;
    } else {
      ++counters_.failures;
    }
  }
  job->inbox->completions.push_back({job->request.tag, std::move(job->status)});
  handed_out_.erase(job);
}

ReadSteps QueuedReader::steps_of(const Piece& piece) const {
  const ReadRequest& request = piece.job->request;
  const bool direct =
      direct_ != DirectReads::Off &&
      can_be_direct(*request.file, piece.offset, piece.into, request.surroundings_writable);
  return ReadSteps({*request.file, piece.offset, piece.into, direct});
}

void QueuedReader::drop_behind(const Piece& piece, const ReadOutcome& outcome) const {
  if (direct_ != DirectReads::On || piece.into.size() < kDropBytesLeast) return;
  if (outcome.direct_bytes == piece.into.size()) return;
  piece.job->request.file->drop_cached(piece.offset, piece.into.size());
}

}  // namespace deltafin::io
