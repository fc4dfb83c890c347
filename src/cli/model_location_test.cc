#include "cli/model_location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace deltafin::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(RequiredModel, IsNeitherMissingNorEmpty) {
  EXPECT_EQ(required_model("m", "run"), "m");
  EXPECT_THAT(required_model(std::nullopt, "run").error().what, HasSubstr("run needs a MODEL\n"));
  EXPECT_THAT(required_model("", "run").error().what, HasSubstr("the one given is empty"));
}

TEST(BundledModel, LiesBesideAnInstalledProgramOrInTheSourceTree) {
  EXPECT_THAT(bundled_model_folders("", "/opt/bin/deltafin", "/src/deltafin"),
              ElementsAre("/opt/share/deltafin/demo", "/models/demo", "/src/deltafin/models/demo"));
  EXPECT_THAT(bundled_model_folders("", "/src/deltafin/build/dev/deltafin", ""),
              ElementsAre("/src/deltafin/build/share/deltafin/demo", "/src/deltafin/models/demo"));
}

TEST(BundledModel, IsWhereTheUserSays) {
  EXPECT_THAT(bundled_model_folders("/mine", "/opt/bin/deltafin", "/src"), ElementsAre("/mine"));
}

TEST(BundledModel, IsLookedForWithoutAnExecutablePath) {
  EXPECT_THAT(bundled_model_folders("", "", "/src"), ElementsAre("/src/models/demo"));
}

TEST(FindModel, LeavesEveryOtherNameAlone) {
  const io::PosixStorage storage;
  for (const char* name : {"./demo", "demo/", "/models/k3", "Demo", ""})
    EXPECT_EQ(find_model(storage, name), name);
}

TEST(FindModel, SaysWhereItLookedForTheBundledOne) {
  ASSERT_EQ(::setenv("DELTAFIN_DEMO", "/nowhere/at/all", 1), 0);
  const Result<std::string> found = find_model(io::PosixStorage(), "demo");
  ::unsetenv("DELTAFIN_DEMO");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::BadModel);
  EXPECT_THAT(found.error().what, HasSubstr("looked in\n  /nowhere/at/all\n"));
}

}  // namespace
}  // namespace deltafin::cli
