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

json inspect_config(const char* name) {
  const std::string path = in_repository(std::string("tests/golden/configs/") + name);
  const Outcome outcome = run_program({"inspect", "--config", path, "--json"});
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  return json::parse(outcome.out);
}

std::string inspect_config_as_text(const char* name) {
  return run_program(
             {"inspect", "--config", in_repository(std::string("tests/golden/configs/") + name)})
      .out;
}

TEST(Inspect, KnowsQwen35FromItsConfigAlone) {
  const json report = inspect_config("qwen3.5-122b-a10b.json");
  EXPECT_EQ(report.at("layers").dump(),
            R"({"count":48,"dense":0,"gated_delta_net":36,"grouped_query":12,"moe":48})");
  EXPECT_EQ(report.at("parameters").at("total"), 122'111'526'912);
  const json& bytes = report.at("bytes");
  EXPECT_EQ(bytes.at("one_expert"), 18'874'368);
  EXPECT_EQ(bytes.at("cold_experts_per_token"), 7'247'757'312);
  EXPECT_EQ(bytes.at("routed_experts"), 48ull * 256 * 18'874'368);
  // All tensors of the release but prediction layer and vision tower.
  EXPECT_EQ(bytes.at("total"), 250'173'007'840 - 5'949'940'192);
  // 12 layers with keys and values of 2 heads of 256; 36 with 3 rows of 12288 channels and 64
  // matrices of 128 x 128.
  EXPECT_EQ(report.at("state").at("bytes_per_token"), 12 * 2 * 2 * 256 * 4);
  EXPECT_EQ(report.at("state").at("bytes_per_sequence"), 36 * (3 * 12288 + 64 * 128 * 128) * 4);
  EXPECT_EQ(report.at("dimensions").at("delta_value_head_count"), 64);
  EXPECT_EQ(report.at("dimensions").at("rotary_dim"), 64);
  EXPECT_EQ(report.at("dimensions").at("experts").at("shared_dim"), 1024);
  EXPECT_EQ(report.at("unknown_config_fields").size(), 0u);

  const std::string text = inspect_config_as_text("qwen3.5-122b-a10b.json");
  for (const char* part :
       {"Qwen3_5MoeForConditionalGeneration",
        "48: 36 Gated DeltaNet, 12 attention; 48 with experts",
        "16 key heads of 128, 64 value heads of 128, convolution over 4",
        "32 heads of 256, 2 of keys and values, 64 rotated, gated",
        "256 a layer, 8 a token, 1 shared (1024 wide, gated); 3072 -> 1024, BF16 or F32",
        "7,247,757,312 bytes", "18,874,368 bytes"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(text, Not(HasSubstr("dense")));
}

TEST(Inspect, KnowsQwen3MoeFromItsConfigAlone) {
  const json report = inspect_config("qwen3-30b-a3b.json");
  EXPECT_EQ(report.at("layers").dump(),
            R"({"count":48,"dense":0,"gated_delta_net":0,"grouped_query":48,"moe":48})");
  EXPECT_EQ(report.at("bytes").at("total"), 61'064'245'248);
  EXPECT_EQ(report.at("bytes").at("cold_experts_per_token"), 48 * 8 * 9'437'184ll);
  EXPECT_EQ(report.at("dimensions").at("experts").at("shared"), 0);
  EXPECT_FALSE(report.at("dimensions").contains("conv_taps"));
  const std::string text = inspect_config_as_text("qwen3-30b-a3b.json");
  EXPECT_THAT(text, HasSubstr("128 a layer, 8 a token, none shared; 2048 -> 768"));
  EXPECT_THAT(text, Not(HasSubstr("DeltaNet")));
}

TEST(Inspect, KnowsADenseModelWhoseEmbeddingIsItsHead) {
  const json report = inspect_config("qwen3-0.6b.json");
  EXPECT_EQ(report.at("layers").at("dense"), 28);
  EXPECT_EQ(report.at("parameters").at("total"), 596'049'920);
  EXPECT_EQ(report.at("parameters").at("active"), 596'049'920);
  EXPECT_EQ(report.at("bytes").at("total"), 1'503'264'768);
  EXPECT_EQ(report.at("bytes").at("one_expert"), 0);
  EXPECT_EQ(report.at("dimensions").at("tied_embeddings"), true);
  EXPECT_FALSE(report.at("dimensions").contains("experts"));
  EXPECT_EQ(report.at("state").at("bytes_per_sequence"), 0);
  const std::string text = inspect_config_as_text("qwen3-0.6b.json");
  EXPECT_THAT(text, AllOf(HasSubstr("28: 28 attention; 28 dense"), HasSubstr("3072 wide"),
                          HasSubstr("the embedding is the output head"),
                          HasSubstr("what one token reads when nothing is in memory")));
  EXPECT_THAT(text, Not(HasSubstr("expert")));
}

TEST(Inspect, KeepsTheKeysOfTheKimiFamily) {
  const json report = inspect_config("kimi-k3.json");
  EXPECT_EQ(report.at("layers").dump(), R"({"count":93,"dense":1,"kda":69,"mla":24,"moe":92})");
  EXPECT_EQ(report.at("bytes").at("cold_experts_per_token"), 25'829'572'608);
  for (const char* key :
       {"hidden_size", "vocab_size", "max_positions", "kda_head_count", "kda_head_dim", "conv_taps",
        "mla_head_count", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
        "dense_intermediate_size"})
    EXPECT_TRUE(report.at("dimensions").contains(key)) << key;
  EXPECT_EQ(report.at("dimensions").at("experts").dump(),
            R"({"count":896,"format":"mxfp4","inner_dim":3072,"input_dim":3584,"per_token":16,)"
            R"("shared":2})");
}

TEST(Inspect, ShowsEveryLayoutOfTheQwenFamily) {
  for (const char* const name :
       {"tiny-qwen3.5-moe", "tiny-qwen3-moe", "tiny-qwen3", "tiny-qwen3-single"}) {
    const std::string model = in_repository(std::string("tests/golden/") + name);
    const Outcome outcome = run_program({"inspect", model});
    EXPECT_EQ(outcome.exit_status, 0) << name;
    EXPECT_THAT(outcome.out, HasSubstr("complete: it can be run")) << name;
    EXPECT_THAT(outcome.out, Not(HasSubstr("incomplete"))) << name;
  }
  const json report = json::parse(
      run_program({"inspect", in_repository("tests/golden/tiny-qwen3.5-moe"), "--json"}).out);
  EXPECT_EQ(report.at("bytes").at("total"), report.at("checkpoint").at("found_bytes"));
  const json& ignored = report.at("checkpoint").at("ignored_tensors");
  ASSERT_EQ(ignored.size(), 2u);
  EXPECT_EQ(ignored[0].at("pattern"), "model.visual.*");
  EXPECT_EQ(ignored[1].at("pattern"), "mtp.*");
  EXPECT_EQ(report.at("checkpoint").at("layers")[3].at("mixer"), "grouped_query");
  EXPECT_EQ(report.at("checkpoint").at("layers")[4].at("mixer"), "gated_delta_net");
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
