#include "memory/expert_layout.h"

#include <gtest/gtest.h>

namespace deltafin::memory {
namespace {

using checkpoint::DType;
using checkpoint::ExpertLocation;
using checkpoint::TensorLocation;

ExpertLocation location_of(std::initializer_list<TensorLocation> parts) {
  ExpertLocation location;
  std::copy(parts.begin(), parts.end(), location.begin());
  return location;
}

TEST(ExpertLayout, MakesOneExtentOfPartsThatTouchInAnyOrder) {
  // Parts in the order W1, W1Scale, W3, W3Scale, W2, W2Scale; on disk scales come first.
  const ExpertLayout layout = lay_out_expert(location_of({{0, DType::U8, 1030, 100},
                                                          {0, DType::U8, 1000, 10},
                                                          {0, DType::U8, 1130, 100},
                                                          {0, DType::U8, 1010, 10},
                                                          {0, DType::U8, 1230, 100},
                                                          {0, DType::U8, 1020, 10}}));
  ASSERT_EQ(layout.extents.size(), 1u);
  EXPECT_EQ(layout.extents[0].offset, 1000u);
  EXPECT_EQ(layout.extents[0].size, 330u);
  EXPECT_EQ(layout.part_offset[0] - layout.part_offset[1], 30u);
  EXPECT_EQ(layout.part_offset[4] - layout.part_offset[1], 230u);
}

TEST(ExpertLayout, KeepsTheFilesAlignmentForDirectReads) {
  const ExpertLayout layout = lay_out_expert(location_of({{0, DType::BF16, 123'457, 6},
                                                          {},
                                                          {1, DType::BF16, 99, 6},
                                                          {},
                                                          {1, DType::BF16, 200'000, 6},
                                                          {}}));
  ASSERT_EQ(layout.extents.size(), 3u);
  for (const ExpertExtent& extent : layout.extents)
    EXPECT_EQ(extent.slot_offset % kExtentAlignment, extent.offset % kExtentAlignment);
  EXPECT_EQ(layout.slot_bytes % kExtentAlignment, 0u);
  EXPECT_GE(layout.slot_bytes, layout.extents.back().slot_offset + layout.extents.back().size);
}

TEST(ExpertLayout, DoesNotJoinPartsAcrossAGapOrAFile) {
  const ExpertLayout layout = lay_out_expert(location_of(
      {{0, DType::F32, 0, 8}, {}, {0, DType::F32, 9, 8}, {}, {1, DType::F32, 17, 8}, {}}));
  EXPECT_EQ(layout.extents.size(), 3u);
}

}  // namespace
}  // namespace deltafin::memory
