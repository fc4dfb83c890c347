#include "machine.h"

#include <gtest/gtest.h>

namespace deltafin::bench {
namespace {

TEST(Machine, NamesAFileAfterProcessorAndCores) {
  EXPECT_EQ(machine_slug("Intel(R) Xeon(R) Processor @ 2.80GHz", 2),
            "intel-r-xeon-r-processor-2.80ghz-2-cores");
  EXPECT_EQ(machine_slug("../a", 16), "..-a-16-cores") << "no way out of the folder";
}

TEST(Machine, SharesOfOthersAreShares) {
  Others others;
  for (int i = 0; i < 3; ++i) {
    const double share = others.look();
    EXPECT_GE(share, 0);
    EXPECT_LE(share, 1);
  }
}

}  // namespace
}  // namespace deltafin::bench
