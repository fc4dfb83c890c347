#include "cli/messages.h"

#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

TEST(ErrorText, EndsWithTheExitStatusAndItsMeaning) {
  EXPECT_EQ(error_text({ErrorCode::BadModel, "/m: 2 problems\n  a\n  b"}, "run", nullptr),
            "deltafin: /m: 2 problems\n  a\n  b\nexit 3 (bad or incomplete model)\n");
  EXPECT_EQ(error_text({ErrorCode::Io, "/m/x: cannot open"}, "run", nullptr),
            "deltafin: /m/x: cannot open\nexit 5 (input/output error)\n");
}

TEST(ErrorText, HasOneHintForAUsageError) {
  EXPECT_EQ(error_text({ErrorCode::Usage, "no prompt"}, "run", nullptr),
            "deltafin: no prompt\n  see: deltafin run --help\n");
  EXPECT_EQ(error_text({ErrorCode::Usage, "no prompt"}, "", nullptr),
            "deltafin: no prompt\n  see: deltafin --help\n");
  EXPECT_EQ(
      error_text({ErrorCode::Usage, "no option --promt\n  did you mean --prompt?"}, "run", nullptr),
      "deltafin: no option --promt\n  did you mean --prompt?\n");
}

TEST(ErrorText, SaysWhoStoppedIt) {
  EXPECT_EQ(error_text({ErrorCode::Cancelled, "stopped on request"}, "run", "Ctrl-C"),
            "deltafin: stopped by Ctrl-C\n");
}

TEST(FirstLine, IsAllOfAShortText) {
  EXPECT_EQ(first_line("one\ntwo"), "one");
  EXPECT_EQ(first_line("one"), "one");
  EXPECT_EQ(first_line(""), "");
}

}  // namespace
}  // namespace deltafin::cli
