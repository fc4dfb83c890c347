// deltafin inspect, on checkpoints that are complete, and on those that are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace deltafin::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

TEST(Inspect, ShowsACompleteCheckpoint) {
  const Outcome outcome = run_program({"inspect", "demo"});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
  for (const char* part : {"complete: it can be run", "KimiK3ForConditionalGeneration",
                           "8: 6 KDA, 2 MLA; 1 dense, 7 with", "64 a layer, 4 a token",
                           "2,924,544 bytes", "6,528 bytes", "9 of 9 readable"})
    EXPECT_THAT(outcome.out, HasSubstr(part));
  EXPECT_THAT(outcome.out, Not(HasSubstr("incomplete")));
}

TEST(Inspect, SaysTheSameAsJson) {
  const Outcome outcome = run_program({"inspect", "demo", "--json"});
  EXPECT_EQ(outcome.exit_status, 0);
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("schema"), "deltafin.inspect.v1");
  EXPECT_EQ(report.at("layers").dump(), R"({"count":8,"dense":1,"kda":6,"mla":2,"moe":7})");
  EXPECT_EQ(report.at("bytes").at("one_expert"), 6528);
  EXPECT_EQ(report.at("bytes").at("routed_experts"), 7 * 64 * 6528);
  EXPECT_EQ(report.at("bytes").at("cold_experts_per_token"), 7 * 4 * 6528);
  EXPECT_EQ(report.at("bytes").at("total"), report.at("checkpoint").at("found_bytes"));
  // Two MLA layers of 48 + 16 floats; six KDA layers of 3 x 3 x 128 + 4 x 32 x 32.
  EXPECT_EQ(report.at("state").at("bytes_per_token"), 2 * (48 + 16) * 4);
  EXPECT_EQ(report.at("state").at("bytes_per_sequence"), 6 * (3 * 3 * 128 + 4 * 32 * 32) * 4);
  EXPECT_EQ(report.at("checkpoint").at("usable"), true);
  EXPECT_EQ(report.at("checkpoint").at("layers").size(), 8u);
  EXPECT_EQ(report.at("checkpoint").at("problems").size(), 0u);
}

TEST(Inspect, SaysWhichLayersOfAPartialDownloadAreIncomplete) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  fs::remove(model + "/model-00004-of-000009.safetensors");
  fs::rename(model + "/model-00008-of-000009.safetensors",
             model + "/model-00008-of-000009.safetensors.incomplete");
  const Outcome outcome = run_program({"inspect", model});
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_THAT(outcome.out, HasSubstr("cannot be run"));
  EXPECT_THAT(outcome.out, HasSubstr("incomplete\n"));
  EXPECT_THAT(outcome.out, HasSubstr("model-00004-of-000009.safetensors"));
  EXPECT_THAT(outcome.out, HasSubstr("7 of 9 readable"));

  const Outcome machine = run_program({"inspect", model, "--json"});
  EXPECT_EQ(machine.exit_status, 3);
  const json checkpoint = json::parse(machine.out).at("checkpoint");
  EXPECT_EQ(checkpoint.at("usable"), false);
  EXPECT_GE(checkpoint.at("error_count"), 1);
  EXPECT_EQ(checkpoint.at("unfinished_files").size(), 1u);
  size_t incomplete = 0;
  for (const json& layer : checkpoint.at("layers")) {
    EXPECT_EQ(layer.at("complete") == true, layer.at("found") == layer.at("expected"));
    if (layer.at("complete") == false) {
      ++incomplete;
      EXPECT_THAT(outcome.out, HasSubstr("layer " + layer.at("index").dump() + ": "));
    }
  }
  EXPECT_EQ(incomplete, 2u);
}

TEST(Inspect, LooksAtAConfigAlone) {
  const Outcome outcome =
      run_program({"inspect", "--config", in_repository("models/demo/config.json"), "--json"});
  EXPECT_EQ(outcome.exit_status, 0);
  const json report = json::parse(outcome.out);
  EXPECT_EQ(
      report.at("parameters").at("total"),
      json::parse(run_program({"inspect", "demo", "--json"}).out).at("parameters").at("total"));
  EXPECT_FALSE(report.contains("checkpoint"));
  EXPECT_THAT(run_program({"inspect", "--config", in_repository("models/demo/config.json")}).out,
              HasSubstr("KimiK3ForConditionalGeneration"));
}

TEST(Inspect, NamesTensorsThatItIgnoresAndFieldsItDoesNotKnow) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  json config = json::parse(read_file(model + "/config.json"));
  config["text_config"]["brand_new_feature"] = 1;
  write_file(model + "/config.json", config.dump());
  const Outcome outcome = run_program({"inspect", model});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("text_config.brand_new_feature"));
}

TEST(Inspect, RefusesAConfigThatItCannotRun) {
  const ScratchFolder folder;
  json config = json::parse(read_file(in_repository("models/demo/config.json")));
  config["text_config"]["hidden_act"] = "relu";
  write_file(folder / "config.json", config.dump());
  const Outcome outcome = run_program({"inspect", "--config", folder / "config.json"});
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("config.json"), HasSubstr("hidden_act"), HasSubstr("relu")));
}

TEST(Inspect, SaysWhatIsThereWhereThereIsNoCheckpoint) {
  const ScratchFolder folder;
  const Outcome outcome = run_program({"inspect", folder.path().string()});
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("has no config.json"));
  const Outcome machine = run_program({"inspect", folder.path().string(), "--json"});
  EXPECT_EQ(machine.exit_status, 3);
  EXPECT_GE(json::parse(machine.out).at("checkpoint").at("problems").size(), 1u);
}

TEST(Inspect, ReportsAConfigThatIsNotThere) {
  const Outcome outcome = run_program({"inspect", "--config", "/nowhere/config.json"});
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_THAT(outcome.err, StartsWith("deltafin: /nowhere/config.json: cannot open"));
}

TEST(Inspect, FailsWhenTheDiskIsFull) {
  EXPECT_EQ(run_with({.arguments = {"inspect", "demo"}, .output_path = "/dev/full"}).exit_status,
            5);
}

}  // namespace
}  // namespace deltafin::test
