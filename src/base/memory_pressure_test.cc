#include "base/memory_pressure.h"

#include <gtest/gtest.h>

namespace deltafin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FakeGauge final : public PressureGauge {
 public:
  MemoryPressure read() const override {
    ++looks;
    return pressure;
  }
  MemoryPressure pressure;
  mutable int looks = 0;
};

TEST(PressureWatch, NoticesMajorFaultsAndStalls) {
  FakeGauge gauge;
  gauge.pressure = {.major_faults = 5000, .stalled = seconds(50)};
  PressureWatch watch(&gauge);
  EXPECT_FALSE(watch.is_short(seconds(10)));  // what was before does not count
  gauge.pressure.major_faults += 200;
  EXPECT_FALSE(watch.is_short(seconds(12)));  // 100 a second
  gauge.pressure.major_faults += 202;
  EXPECT_TRUE(watch.is_short(seconds(14)));
  EXPECT_FALSE(watch.is_short(seconds(16)));
  gauge.pressure.stalled += milliseconds(201);
  EXPECT_TRUE(watch.is_short(seconds(18)));
}

TEST(PressureWatch, LooksOnceASecond) {
  FakeGauge gauge;
  PressureWatch watch(&gauge);
  for (int i = 0; i < 35; ++i) watch.is_short(milliseconds(100 * i));
  EXPECT_EQ(gauge.looks, 4);
}

TEST(PressureWatch, WithoutAGaugeIsNeverWorried) {
  PressureWatch watch(nullptr);
  EXPECT_FALSE(watch.is_short(seconds(1)));
  EXPECT_FALSE(watch.is_short(seconds(9)));
}

TEST(MemoryPressure, IsReadFromTheKernelsWords) {
  EXPECT_EQ(parse_full_stall("some avg10=0.00 avg60=0.00 avg300=0.16 total=16826661\n"
                             "full avg10=0.00 avg60=0.00 avg300=0.00 total=3717636\n"),
            std::chrono::microseconds(3717636));
  EXPECT_EQ(parse_full_stall("some avg10=0.00 total=16826661\n"), std::nullopt);
  EXPECT_EQ(parse_full_stall("full avg10=0.00 total=\n"), std::nullopt);
  EXPECT_EQ(parse_full_stall(""), std::nullopt);
  // Here, too: two looks never go back.
  const SystemPressureGauge gauge;
  const MemoryPressure first = gauge.read(), second = gauge.read();
  EXPECT_GE(second.major_faults, first.major_faults);
  EXPECT_GE(second.stalled, first.stalled);
}

}  // namespace
}  // namespace deltafin
