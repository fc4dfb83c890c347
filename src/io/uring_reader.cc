#include <fmt/format.h>
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "io/os_error.h"
#include "io/queued_reader.h"

namespace deltafin::io {

namespace {

// One entry moves at most this: its length has 32 bits, and the kernel stops below 2 GiB anyway.
constexpr size_t kEntryBytesMax = size_t{1} << 30;

// What the completion of the poll for new work carries instead of a flight's number.
constexpr uint64_t kWakeTag = std::numeric_limits<uint64_t>::max();

std::unexpected<Error> unusable(int number) {
  return fail(ErrorCode::Io, fmt::format("io_uring does not work here: {}", os_error(number)));
}

// The kernel's queues and the means to wake who waits for them.
class Ring {
 public:
  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (is_open_) io_uring_queue_exit(&ring_);
    if (wake_fd_ >= 0) ::close(wake_fd_);
  }

  Status open(uint32_t entry_count) {
    // No SQPOLL: its poller would take half a core from the compute team.
    const int opened = io_uring_queue_init(entry_count, &ring_, 0);
    if (opened < 0) return unusable(-opened);
    is_open_ = true;
    io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
    const bool can_read = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0;
    io_uring_free_probe(probe);
    if (!can_read) return unusable(EOPNOTSUPP);  // a kernel before 5.6
    wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd_ < 0) return unusable(errno);
    return {};
  }

  io_uring* get() { return &ring_; }
  int wake_fd() const { return wake_fd_; }

 private:
  io_uring ring_ = {};
  bool is_open_ = false;
  int wake_fd_ = -1;
};

class UringReader final : public QueuedReader {
 public:
  static Result<std::unique_ptr<Reader>> make(const UringReaderOptions& options);

  explicit UringReader(const UringReaderOptions& options)
      : QueuedReader({.in_flight_count = options.in_flight_count,
                      .in_flight_bytes = options.in_flight_bytes},
                     options.direct),
        flights_(options.in_flight_count) {}
  ~UringReader() override;

  const char* name() const override { return "io_uring"; }

 private:
  // A piece that the kernel reads; its place in flights_ is its number.
  struct Flight {
    Piece piece;
    ReadSteps steps;
    ReadSteps::Step step = {};
    File::Handle descriptor = nullptr;  // open until the kernel is done with it
  };

  void wake() override;
  void work();
  std::vector<Piece> take_startable();
  void start(const Piece& piece);
  void advance(size_t number);
  void reap();
  void complete(size_t number, int result);
  void listen();
  io_uring_sqe* next_entry();

  Ring ring_;
  std::vector<std::optional<Flight>> flights_;  // of the I/O thread alone
  bool listening_ = false;                      // the same
  bool stopping_ = false;
  std::thread thread_;
};

Result<std::unique_ptr<Reader>> UringReader::make(const UringReaderOptions& options) {
  CHECK(options.in_flight_count > 0);
  auto reader = std::make_unique<UringReader>(options);
  // Room for every flight and the poll, so that an entry is always free.
  TRY_STATUS(reader->ring_.open(options.in_flight_count + 1));
  try {
    reader->thread_ = std::thread([raw = reader.get()] { raw->work(); });
  } catch (const std::system_error& error) {
    return unusable(error.code().value());
  }
  return reader;
}

UringReader::~UringReader() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
}

void UringReader::wake() {
  const uint64_t one = 1;
  // Can only fail when the counter is full, and then it wakes already.
  [[maybe_unused]] const ssize_t written = ::write(ring_.wake_fd(), &one, sizeof one);
}

void UringReader::work() {
  for (;;) {
    for (const Piece& piece : take_startable()) start(piece);
    {
      const std::lock_guard lock(mutex_);
      // A file without a descriptor may have ended in start() and left room.
      if (can_start()) continue;
      if (stopping_ && in_flight_count() == 0) return;
    }
    if (!listening_) listen();
    // Short of memory or interrupted: the entries stay where they are until the next turn.
    if (io_uring_submit_and_wait(ring_.get(), 1) < 0 && io_uring_cq_ready(ring_.get()) == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    reap();
  }
}

std::vector<QueuedReader::Piece> UringReader::take_startable() {
  std::vector<Piece> pieces;
  const std::lock_guard lock(mutex_);
  while (can_start()) pieces.push_back(start_next());
  return pieces;
}

void UringReader::start(const Piece& piece) {
  const auto free = std::ranges::find_if(flights_, [](const auto& flight) { return !flight; });
  CHECK(free != flights_.end());
  free->emplace(Flight{piece, steps_of(piece)});
  advance(size_t(free - flights_.begin()));
}

// Hands the flight's next step to the kernel, or ends the flight.
void UringReader::advance(size_t number) {
  Flight& flight = *flights_[number];
  const File& file = *flight.piece.job->request.file;
  while (!flight.steps.done()) {
    flight.step = flight.steps.next();
    flight.descriptor = flight.step.direct ? file.direct_descriptor() : file.descriptor();
    if (flight.descriptor == nullptr) {
      flight.steps.take(read_step(file, flight.step));
      continue;
    }
    const size_t size = std::min(flight.step.into.size(), kEntryBytesMax);
    flight.step.into = flight.step.into.first(size);
    io_uring_sqe* entry = next_entry();
    io_uring_prep_read(entry, flight.descriptor->get(), flight.step.into.data(),
                       static_cast<unsigned>(size), flight.step.offset);
    io_uring_sqe_set_data64(entry, number);
    return;
  }
  drop_behind(flight.piece, flight.steps.outcome());
  const std::lock_guard lock(mutex_);
  finish(flight.piece, std::move(flight.steps.outcome()));
  flights_[number].reset();
}

void UringReader::reap() {
  io_uring_cqe* completion = nullptr;
  while (io_uring_peek_cqe(ring_.get(), &completion) == 0) {
    const uint64_t tag = io_uring_cqe_get_data64(completion);
    const int result = completion->res;
    io_uring_cqe_seen(ring_.get(), completion);
    if (tag == kWakeTag) {
      listening_ = false;
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(ring_.wake_fd(), &count, sizeof count);
    } else {
      complete(tag, result);
    }
  }
}

void UringReader::complete(size_t number, int result) {
  Flight& flight = *flights_[number];
  const ReadSteps::Step& step = flight.step;
  if (result >= 0) {
    flight.steps.take(static_cast<size_t>(result));
  } else if (result != -EINTR) {
    flight.steps.take(cannot_read(flight.piece.job->request.file->path(), step.into.size(),
                                  step.offset, -result));
  }
  advance(number);
}

// Asks for a completion once somebody has called wake().
void UringReader::listen() {
  io_uring_sqe* entry = next_entry();
  io_uring_prep_poll_add(entry, ring_.wake_fd(), POLLIN);
  io_uring_sqe_set_data64(entry, kWakeTag);
  listening_ = true;
}

io_uring_sqe* UringReader::next_entry() {
  io_uring_sqe* entry = io_uring_get_sqe(ring_.get());
  CHECK(entry != nullptr);
  return entry;
}

}  // namespace

Result<std::unique_ptr<Reader>> make_uring_reader(const UringReaderOptions& options) {
  return UringReader::make(options);
}

}  // namespace deltafin::io
