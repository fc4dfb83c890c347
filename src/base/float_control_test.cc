#include "base/float_control.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <limits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace deltafin {
namespace {

// Restores the register, whatever a test does to it.
class FloatControl : public testing::Test {
 protected:
  ~FloatControl() override { set_canonical_float_control(); }
};

TEST_F(FloatControl, IsCanonicalAfterItWasSet) {
  set_canonical_float_control();
  EXPECT_TRUE(float_control_is_canonical());
}

TEST_F(FloatControl, NoticesEveryOtherRoundingMode) {
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    EXPECT_FALSE(float_control_is_canonical()) << mode;
    set_canonical_float_control();
    EXPECT_TRUE(float_control_is_canonical()) << mode;
  }
}

#if defined(__x86_64__)
TEST_F(FloatControl, NoticesFlushToZeroAndDenormalsAreZero) {
  constexpr unsigned kDenormalsAreZero = 1u << 6;
  for (const unsigned bit : {unsigned{_MM_FLUSH_ZERO_ON}, kDenormalsAreZero}) {
    _mm_setcsr(_mm_getcsr() | bit);
    EXPECT_FALSE(float_control_is_canonical()) << bit;
    set_canonical_float_control();
    EXPECT_TRUE(float_control_is_canonical()) << bit;
  }
}

TEST_F(FloatControl, SettingItBringsSubnormalsBack) {
  volatile float smallest = std::numeric_limits<float>::min();
  _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON);
  EXPECT_EQ(smallest / 2, 0.0f);
  set_canonical_float_control();
  EXPECT_GT(smallest / 2, 0.0f);
}

TEST_F(FloatControl, IgnoresTheFlagsThatArithmeticRaises) {
  set_canonical_float_control();
  volatile float one = 1, three = 3;
  volatile float inexact = one / three;
  static_cast<void>(inexact);
  EXPECT_TRUE(float_control_is_canonical());
}
#endif

}  // namespace
}  // namespace deltafin
