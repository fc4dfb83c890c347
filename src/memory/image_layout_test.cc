#include "memory/image_layout.h"

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

TEST(ImageLayout, MakesOneExtentOfPartsThatTouchInAnyOrder) {
  // Parts in the order W1, W1Scale, W3, W3Scale, W2, W2Scale; on disk scales come first.
  const ImageLayout layout = lay_out_image(location_of({{0, DType::U8, 1030, 100},
                                                        {0, DType::U8, 1000, 10},
                                                        {0, DType::U8, 1130, 100},
                                                        {0, DType::U8, 1010, 10},
                                                        {0, DType::U8, 1230, 100},
                                                        {0, DType::U8, 1020, 10}}),
                                           0);
  ASSERT_EQ(layout.extents.size(), 1u);
  EXPECT_EQ(layout.extents[0].offset, 1000u);
  EXPECT_EQ(layout.extents[0].size, 330u);
  EXPECT_EQ(layout.tensor_position[0] - layout.tensor_position[1], 30u);
  EXPECT_EQ(layout.tensor_position[4] - layout.tensor_position[1], 230u);
}

TEST(ImageLayout, KeepsTheFilesAlignmentForDirectReads) {
  const ImageLayout layout = lay_out_image(location_of({{0, DType::BF16, 123'457, 6},
                                                        {},
                                                        {1, DType::BF16, 99, 6},
                                                        {},
                                                        {1, DType::BF16, 200'000, 6},
                                                        {}}),
                                           0);
  ASSERT_EQ(layout.extents.size(), 3u);
  for (const FileExtent& extent : layout.extents)
    EXPECT_EQ(extent.position % kExtentAlignment, extent.offset % kExtentAlignment);
  EXPECT_EQ(layout.bytes % kExtentAlignment, 0u);
  EXPECT_GE(layout.bytes, layout.extents.back().position + layout.extents.back().size);
}

TEST(ImageLayout, DoesNotJoinPartsAcrossAGapOrAFile) {
  const ImageLayout layout = lay_out_image(
      location_of(
          {{0, DType::F32, 0, 8}, {}, {0, DType::F32, 9, 8}, {}, {1, DType::F32, 17, 8}, {}}),
      0);
  EXPECT_EQ(layout.extents.size(), 3u);
}

TEST(ImageLayout, ReadsASmallGapRatherThanAsTwice) {
  const TensorLocation tensors[] = {
      {0, DType::F32, 1000, 80}, {0, DType::F32, 1100, 80}, {0, DType::F32, 1201, 80}};
  const ImageLayout layout = lay_out_image(tensors, 20);
  ASSERT_EQ(layout.extents.size(), 2u);
  EXPECT_EQ(layout.extents[0].size, 180u);
  EXPECT_EQ(layout.tensor_position[1] - layout.tensor_position[0], 100u);
  EXPECT_EQ(layout.extents[1].offset, 1201u);
}

}  // namespace
}  // namespace deltafin::memory
