// A full-size K3 is opened: everything but the weights is as large as its users meet it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/machine.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/survey.h"
#include "soak/k3.h"
#include "soak/synthetic_checkpoint.h"
#include "support/engine_fixture.h"

namespace deltafin {
namespace {

using checkpoint::Checkpoint;
using checkpoint::Survey;
using checkpoint::TensorLocation;
using test::SyntheticCheckpoint;

std::vector<std::byte> read(const io::File& file, uint64_t offset, uint64_t size) {
  std::vector<std::byte> bytes(size);
  EXPECT_TRUE(io::read_exactly(file, offset, bytes));
  return bytes;
}

constexpr uint64_t kExpertBytes = 17'547'264;

// The one piece of its shard in which an expert lies; a failure if it is more than one.
TensorLocation piece_of_expert(const Checkpoint& checkpoint, uint32_t layer, uint32_t expert) {
  checkpoint::ExpertLocation parts = checkpoint.expert(layer, expert);
  std::ranges::sort(parts, {}, &TensorLocation::offset);
  TensorLocation piece = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].file, piece.file);
    EXPECT_EQ(parts[i].offset, piece.offset + piece.size) << layer << " " << expert;
    piece.size += parts[i].size;
  }
  EXPECT_EQ(piece.size, kExpertBytes) << layer << " " << expert;
  return piece;
}

TEST(SurveySoak, FindsAllOfAFullSizeK3InSecondsAndAFewHundredMegabytes) {
  const SyntheticCheckpoint storage(test::k3_config());
  EXPECT_EQ(storage.tensor_count(), 497'220u);
  EXPECT_EQ(storage.tensor_bytes(), 1'560'860'324'864u);

  const uint64_t before = Machine().peak_resident_bytes().value_or(0);
  const SystemClock clock;
  const std::chrono::nanoseconds start = clock.now();
  const Survey survey = Survey::of(storage, SyntheticCheckpoint::kFolder);
  const double time = seconds(clock.now() - start - storage.time_in_headers());
  const uint64_t peak = Machine().peak_resident_bytes().value_or(0);

  EXPECT_TRUE(survey.is_usable());
  EXPECT_THAT(survey.problems().kept(), testing::IsEmpty());
  EXPECT_EQ(survey.layers().size(), 93u);
  EXPECT_EQ(survey.shards().size(), 96u);
  uint64_t tensor_count = 0, ignored_bytes = 0;
  for (const checkpoint::ShardSummary& shard : survey.shards()) tensor_count += shard.tensor_count;
  for (const checkpoint::IgnoredTensors& part : survey.ignored()) ignored_bytes += part.bytes;
  EXPECT_EQ(tensor_count, 497'220u);
  EXPECT_EQ(ignored_bytes, 894'717'952u);
  EXPECT_EQ(survey.found_bytes() + ignored_bytes, 1'560'860'324'864u);

  std::cout << fmt::format("survey: {:.2f} s, peak {:.0f} MB, of which {:.0f} MB before it\n", time,
                           double(peak) / 1e6, double(before) / 1e6);
  EXPECT_LT(time, 10.0);
  EXPECT_LT(peak, 400'000'000u);
}

TEST(SurveySoak, FindsEveryExpertOfK3InOnePieceAtNoAlignment) {
  const SyntheticCheckpoint storage(test::k3_config());
  const Checkpoint checkpoint =
      test::value_of(Checkpoint::open(storage, SyntheticCheckpoint::kFolder));
  std::set<uint64_t> alignments;
  for (uint32_t layer = 1; layer < 93; ++layer) {
    for (uint32_t expert = 0; expert < 896; ++expert) {
      const TensorLocation piece = piece_of_expert(checkpoint, layer, expert);
      alignments.insert(piece.offset % io::kDirectAlignment);
    }
  }
  EXPECT_FALSE(alignments.contains(0));
}

// One read of everything against many of its parts.
TEST(SurveySoak, LeavesTensorsThatReadTheSameInAnyParts) {
  const SyntheticCheckpoint storage(test::k3_config());
  const Checkpoint checkpoint =
      test::value_of(Checkpoint::open(storage, SyntheticCheckpoint::kFolder));
  const auto check = [&](uint32_t file_index, uint64_t offset, uint64_t size) {
    const io::File& file = checkpoint.file(file_index);
    const std::vector<std::byte> whole = read(file, offset, size);
    for (uint64_t begin = 0, step = 1; begin < size; begin += step) {
      step = std::min(step * 3 + 1, size - begin);
      const std::vector<std::byte> part = read(file, offset + begin, step);
      ASSERT_EQ(std::memcmp(part.data(), whole.data() + begin, step), 0)
          << file.path() << " at " << offset + begin;
    }
  };
  // Six tensors of an expert, and the beginning of the next one's.
  const TensorLocation last = piece_of_expert(checkpoint, 92, 895);
  check(last.file, last.offset - 1001, last.size + 5003);
  // The header and what follows.
  check(checkpoint.expert(1, 0)[0].file, 0, 2'000'003);
  for (const TensorLocation& tensor : checkpoint.trunk(3))
    check(tensor.file, tensor.offset, std::min<uint64_t>(tensor.size, 1'000'003));
  for (const TensorLocation& tensor : checkpoint.globals())
    check(tensor.file, tensor.offset + tensor.size - std::min<uint64_t>(tensor.size, 100'003),
          std::min<uint64_t>(tensor.size, 100'003));

  const auto bytes_of_expert = [&](uint32_t layer, uint32_t expert) {
    const TensorLocation piece = piece_of_expert(checkpoint, layer, expert);
    return read(checkpoint.file(piece.file), piece.offset, piece.size);
  };
  const std::vector<std::byte> one = bytes_of_expert(40, 7);
  EXPECT_NE(one, bytes_of_expert(40, 8));
  EXPECT_NE(one, bytes_of_expert(41, 7));
}

}  // namespace
}  // namespace deltafin
