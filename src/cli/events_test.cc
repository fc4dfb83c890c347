#include "cli/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace deltafin::cli {
namespace {

using nlohmann::ordered_json;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Events, AreOneLineEach) {
  EXPECT_EQ(
      to_line(
          to_json({.index = 2, .id = 17, .text = "a\nb", .is_stop = false}, milliseconds(1500))),
      R"({"event":"token","elapsed_seconds":1.5,"index":2,"id":17,"text":"a\nb","stop":false})"
      "\n");
}

TEST(Events, HaveNoTextWithoutATokenizer) {
  EXPECT_TRUE(to_json({.index = 0, .id = 1, .text = {}}, milliseconds(0)).at("text").is_null());
}

TEST(Events, ShowHowFarPrefillIs) {
  const ordered_json json = prefill_progress_event(
      {.rows_done = 10, .rows_in_pass = 10, .rows_total = 40, .layers_done = 2, .layer_count = 4},
      milliseconds(250));
  EXPECT_EQ(
      json.dump(),
      R"({"event":"prefill_progress","elapsed_seconds":0.25,"fraction":0.375,"tokens_done":10,)"
      R"("tokens_in_pass":10,"tokens_total":40,"layers_done":2,"layer_count":4})");
}

TEST(Events, TellAnErrorByKindAndExitCode) {
  const ordered_json json = run_error_event({ErrorCode::BadModel, "shard is missing"});
  EXPECT_EQ(json.dump(), R"({"event":"run_error","kind":"bad or incomplete model","exit_code":3,)"
                         R"("message":"shard is missing"})");
}

TEST(Events, SurviveBytesThatAreNotUtf8) {
  EXPECT_EQ(to_line({{"path", "a\xff"}}), "{\"path\":\"a\xEF\xBF\xBD\"}\n");
}

TEST(EventLog, NamesTheSchemaInTheFirstLineOnly) {
  const std::string path = testing::TempDir() + "/deltafin-events-test.jsonl";
  std::remove(path.c_str());
  Result<GrowingFile> file = GrowingFile::create(path, Existing::Refuse);
  ASSERT_TRUE(file);
  EventLog log(std::move(*file));
  log.write(prefill_done_event(5, milliseconds(0)));
  log.write(prefill_done_event(6, milliseconds(0)));
  std::ifstream read(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(read, line);) lines.push_back(line);
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr(R"({"event":"prefill_done","schema":"deltafin.run_event.v1",)"),
                          R"({"event":"prefill_done","elapsed_seconds":0.0,"tokens":6})"));
  std::remove(path.c_str());
}

TEST(EventLog, RemembersTheWriteThatFailed) {
  Result<GrowingFile> file = GrowingFile::create("/dev/full", Existing::Refuse);
  ASSERT_TRUE(file);
  EventLog log(std::move(*file));
  EXPECT_TRUE(log.is_wanted());
  log.write(prefill_done_event(5, milliseconds(0)));
  EXPECT_FALSE(log.is_wanted());
  ASSERT_FALSE(log.status());
  EXPECT_THAT(log.status().error().what, HasSubstr("/dev/full"));
}

TEST(EventLog, IsSilentWithoutAFile) {
  EventLog log(std::nullopt);
  EXPECT_FALSE(log.is_wanted());
  log.write(prefill_done_event(5, milliseconds(0)));
  EXPECT_TRUE(log.status());
}

}  // namespace
}  // namespace deltafin::cli
