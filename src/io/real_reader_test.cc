// The readers on real files, pipes and descriptors.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/philox.h"
#include "io/reader.h"

namespace deltafin::io {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr size_t kBlock = kDirectAlignment;
constexpr uint64_t kFileBytes = 6'000'001;
constexpr std::byte kCanary{0xC5};

// What is in the file.
const std::vector<std::byte>& contents() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> made(kFileBytes);
    for (size_t i = 0; i < made.size(); ++i) made[i] = std::byte(i * 131 + (i >> 8));
    return made;
  }();
  return bytes;
}

// Memory that begins at a border and holds canaries, of which a part is to be read.
class Room {
 public:
  explicit Room(size_t size) : storage_(size + 2 * kBlock, kCanary) {
    const size_t behind = reinterpret_cast<uintptr_t>(storage_.data()) % kBlock;
    first_ = kBlock - behind;
    size_ = size;
  }
  std::span<std::byte> bytes() { return std::span(storage_).subspan(first_, size_); }

  // Whether [from, until) holds the file's bytes from `offset`.
  bool holds(size_t from, size_t until, uint64_t offset) {
    return std::memcmp(&bytes()[from], &contents()[offset], until - from) == 0;
  }
  // Whether nothing outside [from, until) was written, also around bytes().
  bool is_untouched_outside(size_t from, size_t until) const {
    for (size_t i = 0; i < storage_.size(); ++i)
      if ((i < first_ + from || i >= first_ + until) && storage_[i] != kCanary) return false;
    return true;
  }

 private:
  std::vector<std::byte> storage_;
  size_t first_ = 0, size_ = 0;
};

struct Backend {
  const char* name;
  Result<std::unique_ptr<Reader>> (*make)(DirectReads);
};

Result<std::unique_ptr<Reader>> make_threads(DirectReads direct) {
  return make_thread_reader({.direct = direct});
}
Result<std::unique_ptr<Reader>> make_no_threads(DirectReads direct) {
  return make_thread_reader({.thread_count = 0, .direct = direct});
}
Result<std::unique_ptr<Reader>> make_uring(DirectReads direct) {
  return make_uring_reader({.direct = direct});
}

class RealReader : public testing::TestWithParam<Backend> {
 protected:
  RealReader() {
    std::string pattern = (fs::temp_directory_path() / "deltafin-reader-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~RealReader() override { fs::remove_all(folder_); }

  void SetUp() override {
    std::ofstream(folder_ + "/f")
        .write(reinterpret_cast<const char*>(contents().data()), std::streamsize(kFileBytes));
    file_ = storage_.open(folder_ + "/f").value();
    open(DirectReads::Auto);
  }
  void open(DirectReads direct) {
    Result<std::unique_ptr<Reader>> reader = GetParam().make(direct);
    if (!reader) GTEST_SKIP() << reader.error().what;
    channel_.reset();
    reader_ = std::move(*reader);
    channel_ = reader_->open_channel(ReadPriority::Demand);
  }
  Status read(const ReadRequest& request) {
    channel_->submit({&request, 1});
    return channel_->wait()->status;
  }
  // What the counter says where direct reads work, else nothing.
  uint64_t expected_direct(uint64_t bytes) const { return file_->can_read_direct() ? bytes : 0; }

  std::string folder_;
  PosixStorage storage_;
  std::unique_ptr<File> file_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<ReadChannel> channel_;
};

INSTANTIATE_TEST_SUITE_P(Backends, RealReader,
                         testing::Values(Backend{"Threads", make_threads},
                                         Backend{"NoThreads", make_no_threads},
                                         Backend{"Uring", make_uring}),
                         [](const testing::TestParamInfo<Backend>& backend) {
                           return backend.param.name;
                         });

TEST_P(RealReader, ReadsAnUnalignedRequestDirectlyWhereItsSurroundingsAreFree) {
  Room room(8 * kBlock);
  const uint64_t offset = 3 * kBlock + 777;
  const size_t place = kBlock + 777, size = 20'000;
  const Status status = read({.file = file_.get(),
                              .offset = offset,
                              .into = room.bytes().subspan(place, size),
                              .surroundings_writable = true});
  EXPECT_TRUE(status);
  EXPECT_TRUE(room.holds(place, place + size, offset));
  EXPECT_TRUE(room.is_untouched_outside(kBlock, 7 * kBlock));
  EXPECT_EQ(reader_->snapshot().bytes, size);
  EXPECT_EQ(reader_->snapshot().direct_bytes, expected_direct(size));
}

TEST_P(RealReader, AlignedRequestsNeedNoPermission) {
  Room room(4 * kBlock);
  EXPECT_TRUE(read({.file = file_.get(),
                    .offset = 7 * kBlock,
                    .into = room.bytes().subspan(kBlock, 2 * kBlock)}));
  EXPECT_TRUE(room.holds(kBlock, 3 * kBlock, 7 * kBlock));
  EXPECT_TRUE(room.is_untouched_outside(kBlock, 3 * kBlock));
  EXPECT_EQ(reader_->snapshot().direct_bytes, expected_direct(2 * kBlock));
}

TEST_P(RealReader, WritesNothingAroundARequestWithoutPermission) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    Room room(6 * kBlock);
    const size_t size = 1 + random.below(3 * kBlock);
    const uint64_t offset = random.below(kFileBytes - size);
    // Every other time at a place that a direct read could reach.
    const size_t place =
        round % 2 == 0 ? kBlock + offset % kBlock : size_t(random.below(2 * kBlock));
    EXPECT_TRUE(
        read({.file = file_.get(), .offset = offset, .into = room.bytes().subspan(place, size)}));
    ASSERT_TRUE(room.holds(place, place + size, offset)) << "round " << round;
    ASSERT_TRUE(room.is_untouched_outside(place, place + size)) << "round " << round;
  }
}

TEST_P(RealReader, WritesAtMostToTheNextBordersWithPermission) {
  Random random(12);
  for (int round = 0; round < 300; ++round) {
    Room room(6 * kBlock);
    const size_t size = 1 + random.below(3 * kBlock);
    const uint64_t offset = random.below(kFileBytes - size);
    const size_t place = kBlock + offset % kBlock;
    EXPECT_TRUE(read({.file = file_.get(),
                      .offset = offset,
                      .into = room.bytes().subspan(place, size),
                      .surroundings_writable = true}));
    ASSERT_TRUE(room.holds(place, place + size, offset)) << "round " << round;
    const size_t end = (place + size + kBlock - 1) / kBlock * kBlock;
    ASSERT_TRUE(room.is_untouched_outside(kBlock, end)) << "round " << round;
  }
}

TEST_P(RealReader, TheLastBlockOfAFileMayBeCutShort) {
  Room room(4 * kBlock);
  const uint64_t offset = kFileBytes - 5000;
  const size_t place = kBlock + offset % kBlock;
  EXPECT_TRUE(read({.file = file_.get(),
                    .offset = offset,
                    .into = room.bytes().subspan(place, 5000),
                    .surroundings_writable = true}));
  EXPECT_TRUE(room.holds(place, place + 5000, offset));
  EXPECT_EQ(reader_->snapshot().direct_bytes, expected_direct(5000));
}

TEST_P(RealReader, ReadsThroughTheCacheWhenToldTo) {
  open(DirectReads::Off);
  Room room(2 * kBlock);
  EXPECT_TRUE(read({.file = file_.get(), .offset = 0, .into = room.bytes()}));
  EXPECT_TRUE(room.holds(0, 2 * kBlock, 0));
  EXPECT_EQ(reader_->snapshot().bytes, 2 * kBlock);
  EXPECT_EQ(reader_->snapshot().direct_bytes, 0u);
}

// Whether the page cache has the page at `offset`.
bool is_cached(int fd, off_t offset) {
  void* const page = ::mmap(nullptr, kBlock, PROT_READ, MAP_SHARED, fd, offset);
  if (page == MAP_FAILED) return false;
  unsigned char state = 0;
  EXPECT_EQ(::mincore(page, kBlock, &state), 0);
  ::munmap(page, kBlock);
  return (state & 1) != 0;
}

TEST_P(RealReader, DropsWhatItHadToReadThroughTheCache) {
  if (!file_->can_read_direct()) GTEST_SKIP() << "files here may live in the page cache alone";
  // Far from both ends: the cache keeps large pages of which only a part was read.
  constexpr off_t kMiddle = 700 * kBlock;
  ASSERT_EQ(::fsync(file_->descriptor()->get()), 0);  // what was not written yet cannot be dropped
  EXPECT_TRUE(is_cached(file_->descriptor()->get(), kMiddle));
  open(DirectReads::On);
  Room room(5'900'000);
  // Beside any place that a direct read could reach.
  EXPECT_TRUE(read({.file = file_.get(), .offset = 1, .into = room.bytes()}));
  EXPECT_TRUE(room.holds(0, 5'900'000, 1));
  EXPECT_FALSE(is_cached(file_->descriptor()->get(), kMiddle));
  EXPECT_EQ(reader_->snapshot().direct_bytes, 0u);
}

TEST_P(RealReader, PiecesOfALargeHintMeet) {
  const std::unique_ptr<ReadChannel> hint = reader_->open_channel(ReadPriority::Hint);
  for (const bool may_write : {false, true}) {
    const uint64_t offset = 2 * kBlock + 99;
    const size_t size = 5'500'000;
    Room room(size + 2 * kBlock);
    const ReadRequest request{.file = file_.get(),
                              .offset = offset,
                              .into = room.bytes().subspan(99, size),
                              .surroundings_writable = may_write};
    hint->submit({&request, 1});
    EXPECT_TRUE(hint->wait()->status);
    EXPECT_FALSE(hint->wait());
    EXPECT_TRUE(room.holds(99, 99 + size, offset));
  }
  EXPECT_EQ(reader_->snapshot().reads, 2u);
}

TEST_P(RealReader, NoticesAFileCutShortSinceItWasOpened) {
  fs::resize_file(folder_ + "/f", 10'000);
  Room room(4 * kBlock);
  for (const bool may_write : {false, true}) {
    const Status status = read({.file = file_.get(),
                                .offset = 8192,
                                .into = room.bytes().first(5000),
                                .surroundings_writable = may_write});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::Io);
    EXPECT_THAT(status.error().what, AllOf(HasSubstr("/f: expected 5000 bytes at offset 8192"),
                                           HasSubstr("got 1808"), HasSubstr("cut short since")));
  }
}

// Lowers the number of descriptors this process may have, for the length of a test.
class FewDescriptors {
 public:
  FewDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit small = {64, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  }
  ~FewDescriptors() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  struct rlimit before_ = {};
};

TEST_P(RealReader, ReadsMoreFilesThanASmallLimitOfDescriptorsLetsItOpen) {
  const FewDescriptors limit;
  constexpr size_t kAtOnce = 35;
  std::vector<std::unique_ptr<File>> files;
  for (size_t i = 0; i < 6 * kAtOnce; ++i) files.push_back(storage_.open(folder_ + "/f").value());
  Room room(kAtOnce * kBlock);
  for (int round = 0; round < 2; ++round) {
    for (size_t first = 0; first < files.size(); first += kAtOnce) {
      std::vector<ReadRequest> requests;
      for (size_t i = 0; i < kAtOnce; ++i)
        requests.push_back({.file = files[first + i].get(),
                            .offset = i * kBlock,
                            .into = room.bytes().subspan(i * kBlock, kBlock),
                            .tag = i});
      channel_->submit(requests);
      while (const std::optional<ReadCompletion> completion = channel_->wait())
        EXPECT_TRUE(completion->status) << completion->status.error().what;
    }
  }
  // Whoever else needs a descriptor still gets one.
  const int other = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_GE(other, 0);
  ::close(other);
  EXPECT_TRUE(room.holds(0, kAtOnce * kBlock, 0));
}

TEST_P(RealReader, SaysWhenAnotherFileHasTakenThePlaceOfOneThatItHadToClose) {
  const FewDescriptors limit;
  fs::copy_file(folder_ + "/f", folder_ + "/g");
  fs::copy_file(folder_ + "/f", folder_ + "/h");
  const std::unique_ptr<File> replaced = storage_.open(folder_ + "/g").value();
  std::vector<std::unique_ptr<File>> others;
  for (int i = 0; i < 64; ++i) others.push_back(storage_.open(folder_ + "/f").value());
  fs::rename(folder_ + "/h", folder_ + "/g");
  Room room(kBlock);
  const Status status = read({.file = replaced.get(), .offset = 0, .into = room.bytes()});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Io);
  EXPECT_THAT(status.error().what, HasSubstr("/g: another file has taken its place"));
}

// A file that is whatever its descriptor is: only io_uring reads it.
class DescriptorFile final : public File {
 public:
  explicit DescriptorFile(int fd) : descriptor_(std::make_shared<const Descriptor>(fd)) {}
  const std::string& path() const override { return path_; }
  uint64_t size() const override { return UINT64_MAX; }
  Result<size_t> read_at(uint64_t, std::span<std::byte>) const override {
    ADD_FAILURE() << "io_uring was to read this";
    return size_t{0};
  }
  Handle descriptor() const override { return descriptor_; }

 private:
  std::string path_ = "descriptor";
  Handle descriptor_;
};

// A pipe: what is read from it stays in flight until somebody writes.
struct Pipe {
  Pipe() {
    int ends[2] = {};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    file = std::make_unique<DescriptorFile>(ends[0]);
    into.resize(40);
    write_end = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { ::close(write_end); }

  void write(size_t size) const {
    const std::vector<char> text(size, 'x');
    EXPECT_EQ(::write(write_end, text.data(), size), ssize_t(size));
  }
  // Whether everything written was read before long.
  bool is_drained(std::chrono::milliseconds patience) const {
    for (const auto end = std::chrono::steady_clock::now() + patience;;) {
      int left = 0;
      EXPECT_EQ(ioctl(file->descriptor()->get(), FIONREAD, &left), 0);
      if (left == 0) return true;
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  ReadRequest request(uint64_t tag) { return {file.get(), 0, into, tag}; }

  std::unique_ptr<DescriptorFile> file;
  std::vector<std::byte> into;
  int write_end = -1;
};

constexpr std::chrono::milliseconds kLong(10'000), kShort(30);

class UringReader : public testing::Test {
 protected:
  void SetUp() override { open({}); }
  void open(const UringReaderOptions& options) {
    Result<std::unique_ptr<Reader>> reader = make_uring_reader(options);
    if (!reader) GTEST_SKIP() << reader.error().what;
    channel_.reset();
    reader_ = std::move(*reader);
    channel_ = reader_->open_channel(ReadPriority::Demand);
  }
  void submit(const ReadRequest& request) { channel_->submit({&request, 1}); }

  Pipe a_, b_, c_;  // before the reader: what is in flight must not outlive them
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<ReadChannel> channel_;
};

TEST_F(UringReader, HasNoMoreBytesInFlightThanItsBound) {
  open({.in_flight_count = 8, .in_flight_bytes = 100});
  submit(a_.request(1));
  submit(b_.request(2));
  submit(c_.request(3));  // the third 40 do not fit into 100
  c_.write(40);
  EXPECT_FALSE(c_.is_drained(kShort));
  b_.write(40);
  EXPECT_EQ(channel_->wait()->tag, 2u);
  EXPECT_EQ(channel_->wait()->tag, 3u);
  a_.write(40);
  EXPECT_EQ(channel_->wait()->tag, 1u);
}

TEST_F(UringReader, HasNoMoreReadsInFlightThanItsBound) {
  open({.in_flight_count = 2});
  submit(a_.request(1));
  submit(b_.request(2));
  submit(c_.request(3));
  c_.write(40);
  EXPECT_FALSE(c_.is_drained(kShort));
  a_.write(40);
  EXPECT_EQ(channel_->wait()->tag, 1u);
  EXPECT_EQ(channel_->wait()->tag, 3u);
  b_.write(40);
  EXPECT_EQ(channel_->wait()->tag, 2u);
}

TEST_F(UringReader, ContinuesAReadThatCameShort) {
  submit(a_.request(1));
  a_.write(15);
  ASSERT_TRUE(a_.is_drained(kLong));
  EXPECT_FALSE(channel_->poll());
  a_.write(25);
  EXPECT_TRUE(channel_->wait()->status);
  EXPECT_EQ(a_.into, std::vector<std::byte>(40, std::byte{'x'}));
  EXPECT_EQ(reader_->snapshot().retries, 1u);
}

TEST_F(UringReader, CancelWithdrawsWhatWaitsAndWaitsForWhatIsInFlight) {
  open({.in_flight_count = 2});
  submit(a_.request(1));
  submit(b_.request(2));
  submit(c_.request(3));
  a_.write(10);
  b_.write(10);
  ASSERT_TRUE(a_.is_drained(kLong) && b_.is_drained(kLong));  // so both are in flight
  c_.write(40);
  bool returned_early = false;
  std::atomic<bool> returned = false;
  std::thread writer([&] {
    while (reader_->snapshot().cancelled < 1) std::this_thread::yield();
    std::this_thread::sleep_for(kShort);
    returned_early = returned;
    a_.write(30);
    b_.write(30);
  });
  channel_->cancel();
  returned = true;
  writer.join();
  EXPECT_FALSE(returned_early);
  EXPECT_EQ(channel_->outstanding(), 0u);
  EXPECT_EQ(reader_->snapshot().reads, 2u);
  EXPECT_EQ(reader_->snapshot().cancelled, 1u);
  EXPECT_FALSE(c_.is_drained(kShort));  // never read
  EXPECT_EQ(a_.into, std::vector<std::byte>(40, std::byte{'x'}));
}

TEST_F(UringReader, WithdrawsFromOneChannelWhileAnotherReads) {
  open({.in_flight_count = 1});
  const std::unique_ptr<ReadChannel> hints = reader_->open_channel(ReadPriority::Hint);
  submit(a_.request(1));
  const ReadRequest waiting = b_.request(2);
  hints->submit({&waiting, 1});
  hints->cancel();  // does not wait for the pipe
  EXPECT_EQ(reader_->snapshot().cancelled, 1u);
  a_.write(40);
  EXPECT_EQ(channel_->wait()->tag, 1u);
}

TEST_F(UringReader, TheKernelsErrorIsTriedOnceMoreAndThenNamed) {
  const DescriptorFile write_only(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  std::vector<std::byte> into(50);
  submit({&write_only, 4096, into, 9});
  const std::optional<ReadCompletion> completion = channel_->wait();
  ASSERT_FALSE(completion->status);
  EXPECT_EQ(completion->tag, 9u);
  EXPECT_THAT(completion->status.error().what,
              AllOf(HasSubstr("descriptor: expected 50 bytes at offset 4096, got 0 (tried twice)"),
                    HasSubstr("cannot read 50 bytes at offset 4096: Bad file descriptor")));
  EXPECT_EQ(reader_->snapshot().retries, 1u);
  EXPECT_EQ(reader_->snapshot().failures, 1u);
}

TEST_F(UringReader, AnInputOutputErrorDoesNotTouchTheOtherReads) {
  // The memory of this process, from its address 0, where nothing is mapped.
  const int fd = ::open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (fd < 0) GTEST_SKIP() << "no /proc/self/mem here";
  const DescriptorFile memory(fd);
  std::vector<std::byte> into(8);
  submit({&memory, 16, into, 5});
  submit(a_.request(1));
  a_.write(40);
  for (int i = 0; i < 2; ++i) {
    const std::optional<ReadCompletion> completion = channel_->wait();
    EXPECT_EQ(completion->status.has_value(), completion->tag == 1);
    if (!completion->status) {
      EXPECT_THAT(completion->status.error().what, HasSubstr("Input/output error"));
    }
  }
}

// As a container's filter does.
void forbid_io_uring() {
  sock_filter program[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, __NR_io_uring_setup},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog filter = {sizeof program / sizeof *program, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    _exit(77);
}

TEST(OpenReaderDeathTest, TakesThreadsWhereIoUringIsForbiddenAndSaysWhy) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        forbid_io_uring();
        const Result<OpenedReader> chosen = open_reader(ReaderKind::Auto, DirectReads::Auto);
        const Result<OpenedReader> asked = open_reader(ReaderKind::Uring, DirectReads::Auto);
        const bool honest =
            chosen && std::string(chosen->reader->name()) == "pread" &&
            chosen->why_not_uring == "io_uring does not work here: Operation not permitted" &&
            !asked && asked.error().what == chosen->why_not_uring;
        _exit(honest ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(OpenReader, GivesWhatWasAskedFor) {
  EXPECT_STREQ(open_reader(ReaderKind::Threads, DirectReads::Auto)->reader->name(), "pread");
  const Result<OpenedReader> any = open_reader(ReaderKind::Auto, DirectReads::Auto);
  EXPECT_EQ(any->why_not_uring.empty(), std::string(any->reader->name()) == "io_uring");
}

}  // namespace
}  // namespace deltafin::io
