#include "memory/layer_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "io/simulated.h"
#include "memory/trunk.h"
#include "support/golden.h"

namespace deltafin::memory {
namespace {

using testing::HasSubstr;

// Layers 2 to 8 of a checkpoint on a simulated disk.
class LayerStreamTest : public testing::Test {
 protected:
  static constexpr uint32_t kFirst = 2;

  void SetUp() override {
    std::vector<ImageLayout> layouts;
    for (uint32_t layer = kFirst; layer < checkpoint_.contract().layers.size(); ++layer)
      layouts.push_back(lay_out_layer(checkpoint_, layer));
    uint64_t place_bytes = 0;
    for (const ImageLayout& layout : layouts) place_bytes = std::max(place_bytes, layout.bytes);
    last_ = kFirst + uint32_t(layouts.size()) - 1;
    ASSERT_GE(layouts.size(), 4u);
    stream_.emplace(checkpoint_, *reader_, clock_, kFirst, std::move(layouts),
                    io::Arena::map(2 * place_bytes).value(), place_bytes);
  }

  // Whether the image at `base` is that of `layer`.
  void expect_image(uint32_t layer, const std::byte* base) {
    const ImageLayout layout = lay_out_layer(checkpoint_, layer);
    for (const FileExtent& extent : layout.extents) {
      std::vector<std::byte> expected(extent.size);
      ASSERT_TRUE(io::read_exactly(checkpoint_.file(extent.file), extent.offset, expected));
      EXPECT_EQ(std::memcmp(expected.data(), base + extent.position, extent.size), 0) << layer;
    }
  }
  void use(uint32_t layer) {
    const Result<const std::byte*> image = stream_->lease(layer, never_);
    ASSERT_TRUE(image) << image.error().what;
    expect_image(layer, *image);
    stream_->release(layer);
  }

  io::PosixStorage real_;
  io::SimulatedStorage storage_{real_};
  SimulatedClock clock_;
  std::unique_ptr<io::Reader> reader_ = io::make_simulated_reader({.seed = 3}, clock_);
  const CancelToken never_;
  checkpoint::Checkpoint checkpoint_ =
      checkpoint::Checkpoint::open(storage_, test::golden_path("tiny-k3")).value();
  std::optional<LayerStream> stream_;
  uint32_t last_ = 0;
};

TEST_F(LayerStreamTest, ReadsEachLayerOnceAPass) {
  for (uint64_t pass = 1; pass <= 3; ++pass) {
    for (uint32_t layer = kFirst; layer <= last_; ++layer) use(layer);
    // Two of the next pass are on their way.
    EXPECT_EQ(stream_->counters().layers_read, pass * (last_ - kFirst + 1) + 2);
  }
}

TEST_F(LayerStreamTest, ReadsTheNextLayerWhileOneIsInUse) {
  ASSERT_TRUE(stream_->lease(kFirst, never_));
  EXPECT_EQ(stream_->counters().layers_read, 2u);
  stream_->release(kFirst);
  EXPECT_EQ(stream_->counters().layers_read, 3u);
  // What has come meanwhile does not have to be waited for.
  ASSERT_TRUE(stream_->lease(kFirst + 1, never_));
  const std::chrono::nanoseconds before = clock_.now();
  stream_->release(kFirst + 1);
  EXPECT_EQ(clock_.now(), before);
}

TEST_F(LayerStreamTest, StartsWhileOthersAreBeforeIt) {
  stream_->expect_first();
  stream_->expect_first();
  EXPECT_EQ(stream_->counters().layers_read, 2u);
  use(kFirst);
  EXPECT_EQ(stream_->counters().layers_read, 3u);
}

TEST_F(LayerStreamTest, FollowsPassesThatOvertakeEachOther) {
  for (const uint32_t layer : {kFirst, kFirst + 3, kFirst, kFirst + 1, last_, kFirst + 2, last_})
    use(layer);
}

TEST_F(LayerStreamTest, ACancelledWaitIsGoneOnWithLater) {
  CancelToken cancelled;
  cancelled.cancel();
  const Result<const std::byte*> image = stream_->lease(kFirst, cancelled);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::Cancelled);
  const uint64_t begun = stream_->counters().layers_read;
  use(kFirst);
  EXPECT_EQ(stream_->counters().layers_read, begun + 1);  // the one after the next
}

TEST_F(LayerStreamTest, AFailureNamesTheLayerAndTheNextLeaseReadsAgain) {
  const FileExtent extent = lay_out_layer(checkpoint_, kFirst + 1).extents.front();
  storage_.set_faults(
      {.ranges = {
           {.file = checkpoint_.file(extent.file).path(), .offset = extent.offset, .size = 1}}});
  use(kFirst);
  for (int i = 0; i < 2; ++i) {
    const Result<const std::byte*> image = stream_->lease(kFirst + 1, never_);
    ASSERT_FALSE(image);
    EXPECT_EQ(image.error().code, ErrorCode::Io);
    EXPECT_THAT(image.error().what, HasSubstr("layer 3 of the trunk"));
  }
  storage_.set_faults({});
  use(kFirst + 1);
  use(kFirst + 2);
}

}  // namespace
}  // namespace deltafin::memory
