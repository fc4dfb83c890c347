#include "io/retry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace deltafin::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr size_t kUnit = kDirectAlignment;

std::byte content_at(uint64_t offset) { return std::byte(offset * 131 + (offset >> 8)); }

// Notes every read, and demands of direct ones that they are aligned.
class CarefulFile final : public File {
 public:
  using Answer = std::function<int64_t(size_t size)>;  // how many bytes come; -1: an error
  Answer direct = [](size_t size) { return int64_t(size); };
  Answer buffered = direct;
  uint64_t file_size = 100 * kUnit;
  mutable std::vector<std::string> reads;

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return file_size; }
  Result<size_t> read_at(uint64_t offset, std::span<std::byte> into) const override {
    reads.push_back("buffered " + std::to_string(offset) + "+" + std::to_string(into.size()));
    return answer(buffered, offset, into);
  }
  bool can_read_direct() const override { return true; }
  Result<size_t> read_direct(uint64_t offset, std::span<std::byte> into) const override {
    EXPECT_EQ(offset % kUnit, 0u);
    EXPECT_EQ(into.size() % kUnit, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(into.data()) % kUnit, 0u);
    reads.push_back("direct " + std::to_string(offset) + "+" + std::to_string(into.size()));
    return answer(direct, offset, into);
  }

 private:
  static Result<size_t> answer(const Answer& script, uint64_t offset, std::span<std::byte> into) {
    const int64_t count = script(into.size());
    if (count < 0) return fail(ErrorCode::Io, "careful: Invalid argument");
    for (size_t i = 0; i < size_t(count); ++i) into[i] = content_at(offset + i);
    return size_t(count);
  }

  std::string path_ = "careful";
};

// Two blocks' worth of bytes that begin 100 behind a border, with room around.
class DirectSteps : public testing::Test {
 protected:
  bool is_right() const {
    for (size_t i = 0; i < into_.size(); ++i)
      if (into_[i] != content_at(kOffset + i)) return false;
    return true;
  }
  ReadOutcome read() { return read_with_retry({file_, kOffset, into_, /*direct=*/true}); }

  static constexpr uint64_t kOffset = 5 * kUnit + 100;
  CarefulFile file_;
  struct alignas(kUnit) Room {
    std::byte bytes[4 * kUnit];
  };
  std::unique_ptr<Room> room_ = std::make_unique<Room>();
  std::span<std::byte> into_ = std::span(room_->bytes).subspan(100, 2 * kUnit);
};

TEST_F(DirectSteps, FetchAnUnalignedRequestAtOnce) {
  const ReadOutcome outcome = read();
  EXPECT_TRUE(outcome.status);
  EXPECT_TRUE(is_right());
  EXPECT_THAT(file_.reads, ElementsAre("direct 20480+12288"));
  EXPECT_EQ(outcome.direct_bytes, 2 * kUnit);
  EXPECT_EQ(outcome.retries, 0u);
}

TEST_F(DirectSteps, GoOnAtTheBorderBeforeTheByteWhereTheyStopped) {
  int count = 0;
  file_.direct = [&](size_t size) { return ++count == 1 ? 5000 : int64_t(size); };
  const ReadOutcome outcome = read();
  EXPECT_TRUE(outcome.status);
  EXPECT_TRUE(is_right());
  EXPECT_THAT(file_.reads, ElementsAre("direct 20480+12288", "direct 24576+8192"));
  EXPECT_EQ(outcome.direct_bytes, 2 * kUnit);
  EXPECT_EQ(outcome.retries, 1u);
}

TEST_F(DirectSteps, DoNotCountWhatComesBeforeTheRequest) {
  file_.direct = [](size_t) { return 100; };  // all of it lies before the first byte wanted
  const ReadOutcome outcome = read();
  EXPECT_TRUE(outcome.status);
  EXPECT_TRUE(is_right());
  EXPECT_THAT(file_.reads, ElementsAre("direct 20480+12288", "buffered 20580+8192"));
  EXPECT_EQ(outcome.direct_bytes, 0u);
}

TEST_F(DirectSteps, GiveWayToTheCacheAfterAnError) {
  file_.direct = [](size_t) { return -1; };
  const ReadOutcome outcome = read();
  EXPECT_TRUE(outcome.status);
  EXPECT_TRUE(is_right());
  EXPECT_THAT(file_.reads, ElementsAre("direct 20480+12288", "buffered 20580+8192"));
  EXPECT_EQ(outcome.retries, 1u);
}

TEST_F(DirectSteps, FailWhenTheCacheFailsToo) {
  file_.direct = file_.buffered = [](size_t) { return -1; };
  const ReadOutcome outcome = read();
  ASSERT_FALSE(outcome.status);
  EXPECT_THAT(outcome.status.error().what,
              HasSubstr("careful: expected 8192 bytes at offset 20580, got 0 (tried twice)"));
  EXPECT_EQ(file_.reads.size(), 2u);
}

TEST_F(DirectSteps, AreOnlyForPlacesThatCanTakeThem) {
  EXPECT_TRUE(can_be_direct(file_, kOffset, into_, true));
  EXPECT_FALSE(can_be_direct(file_, kOffset, into_, false));
  EXPECT_FALSE(can_be_direct(file_, kOffset + 1, into_, true));
  EXPECT_FALSE(can_be_direct(file_, kOffset, into_.first(0), true));
  const std::span<std::byte> blocks = std::span(room_->bytes).first(2 * kUnit);
  EXPECT_TRUE(can_be_direct(file_, 3 * kUnit, blocks, false));
  EXPECT_FALSE(can_be_direct(file_, 3 * kUnit, blocks.first(kUnit + 1), false));
  EXPECT_TRUE(can_be_direct(file_, 98 * kUnit, blocks, false));
  EXPECT_FALSE(can_be_direct(file_, 99 * kUnit, blocks, true));  // half of it behind the end
  EXPECT_FALSE(can_be_direct(file_, UINT64_MAX - kUnit + 1, blocks, true));
}

}  // namespace
}  // namespace deltafin::io
