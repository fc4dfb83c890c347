#include "cli/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace deltafin::cli {
namespace {

using nlohmann::ordered_json;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::Not;

RunReport sample() {
  RunReport report;
  report.directory = "/models/k3";
  report.architecture = "KimiK3ForConditionalGeneration";
  report.prompt_ids = {1, 2, 3, 4};
  report.prefill_count = 4;
  report.text = " Paris.";
  report.stop_token = 9;
  report.result = {.tokens = {5, 6},
                   .reason = engine::StopReason::StopToken,
                   .prefill_time = milliseconds(2000),
                   .decode_time = milliseconds(500),
                   .decode_passes = 2,
                   .next = {}};
  report.after_prefill = engine::EngineCounters();
  report.after_prefill->experts.bytes_read = 1'000'000;
  report.at_end.experts = {.experts_used = 100,
                           .edges = 120,
                           .hits = 75,
                           .misses = 25,
                           .bytes_read = 1'500'000,
                           .failed_runs = 0,
                           .cache_slots = 1000,
                           .cache_bytes = 64'000'000,
                           .layers = {}};
  report.at_end.trunk.resident_bytes = 3'960'000;
  report.reader = "pread";
  report.reads = {.reads = 1200, .bytes = 2'000'000, .direct_bytes = 1'500'000};
  report.isa = "avx2";
  report.thread_count = 2;
  report.position_count = 6;
  report.state_fixed_bytes = 1000;
  report.state_bytes_per_position = 100;
  return report;
}

TEST(RunReport, CountsBytesATokenAfterThePrompt) {
  const ordered_json json = to_json(sample());
  EXPECT_EQ(json.at("counters").at("prefill_expert_bytes_read"), 1'000'000);
  EXPECT_EQ(json.at("counters").at("decode_expert_bytes_per_token"), 250'000.0);
  EXPECT_EQ(json.at("counters").at("state_bytes"), 1600);
  EXPECT_EQ(json.at("timings").at("prefill_tokens_per_second"), 2.0);
  EXPECT_EQ(json.at("timings").at("decode_tokens_per_second"), 4.0);
}

TEST(RunReport, SaysWhatCameOutAndWhy) {
  const ordered_json json = to_json(sample());
  EXPECT_EQ(json.at("schema"), "deltafin.run.v1");
  EXPECT_EQ(json.at("prompt_ids"), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(json.at("ids"), (std::vector<int>{5, 6}));
  EXPECT_EQ(json.at("text"), " Paris.");
  EXPECT_EQ(json.at("stop_reason"), "stop_token");
  EXPECT_EQ(json.at("stop_token"), 9);
  EXPECT_TRUE(json.at("logits_digest").is_null());
  EXPECT_EQ(json.at("sampling").at("mode"), "greedy");
  EXPECT_EQ(json.at("machine").dump(),
            R"({"threads":2,"isa":"avx2","reader":"pread","why_not_io_uring":null})");
  EXPECT_EQ(json.at("counters").at("read_bytes"), 2'000'000);
  EXPECT_EQ(json.at("counters").at("read_direct_bytes"), 1'500'000);
}

TEST(RunReport, HasNoTextWithoutATokenizer) {
  RunReport report = sample();
  report.text.reset();
  report.stop_token.reset();
  EXPECT_TRUE(to_json(report).at("text").is_null());
  EXPECT_TRUE(to_json(report).at("stop_token").is_null());
}

TEST(RunReport, CountsEverythingAsPrefillWhenNoTokenCame) {
  RunReport report = sample();
  report.after_prefill.reset();
  report.result.decode_passes = 0;
  report.result.decode_time = milliseconds(0);
  const ordered_json json = to_json(report);
  EXPECT_EQ(json.at("counters").at("prefill_expert_bytes_read"), 1'500'000);
  EXPECT_EQ(json.at("counters").at("decode_expert_bytes_per_token"), 0.0);
  EXPECT_EQ(json.at("timings").at("decode_tokens_per_second"), 0.0);
}

TEST(RunReport, EndsTheEventsWithTheSameOutcome) {
  RunReport report = sample();
  report.digest = LogitsDigestLine{.sha256 = "abc", .row_count = 3};
  const ordered_json json = run_end_event(report, milliseconds(2500));
  EXPECT_EQ(json.at("event"), "run_end");
  EXPECT_EQ(json.at("elapsed_seconds"), 2.5);
  EXPECT_EQ(json.at("logits_digest").dump(), R"({"sha256":"abc","rows":3})");
  EXPECT_FALSE(json.contains("prompt_ids"));
}

TEST(RunReport, HasTheChatWhereThereWasOne) {
  EXPECT_FALSE(to_json(sample()).contains("chat"));
  RunReport report = sample();
  report.chat =
      ChatReport{"kimi-k2",
                 "why",
                 {{"functions.f:0", "f", "{}"},
                  {"", "g", std::unexpected(text::BadArguments{"not valid JSON", "{oops"})}}};
  const ordered_json expected = ordered_json::parse(R"({
      "template": "kimi-k2", "reasoning": "why",
      "tool_calls": [{"id": "functions.f:0", "name": "f", "arguments": "{}"},
                     {"id": "", "name": "g", "error": "not valid JSON", "raw": "{oops"}]})");
  EXPECT_EQ(to_json(report).at("chat"), expected);
  EXPECT_EQ(run_end_event(report, milliseconds(1)).at("chat"), expected);
}

TEST(RunReport, ReadsAsATable) {
  const std::string text = summary(sample());
  EXPECT_THAT(text, HasSubstr("prompt     4 tokens in 2.0 s, 2.0 tokens/s\n"));
  EXPECT_THAT(text, HasSubstr("generated  2 tokens, 4.0 tokens/s after the first (stop_token)\n"));
  EXPECT_THAT(text, HasSubstr("read       1.000 MB of experts for the prompt, 250 kB a token"));
  EXPECT_THAT(text, HasSubstr("experts    75 hits, 25 misses: 75.0 % came from memory\n"));
  EXPECT_THAT(text, HasSubstr("state      1.600 kB: 1.000 kB + 6 positions of 100 bytes\n"));
  EXPECT_THAT(text, HasSubstr("machine    2 threads, avx2 kernels, pread reader\n"));
  EXPECT_THAT(text, HasSubstr("disk       2.00 MB in 1,200 reads, 1.500 MB of it past the page "));
  EXPECT_THAT(text, HasSubstr("choice     greedy\n"));
}

TEST(RunReport, SaysWhyItDidNotReadByIoUring) {
  RunReport report = sample();
  report.why_not_uring = "io_uring does not work here: Operation not permitted";
  EXPECT_THAT(summary(report), HasSubstr("pread reader: io_uring does not work here: Operation"));
  EXPECT_EQ(to_json(report).at("machine").at("why_not_io_uring"), report.why_not_uring);
}

TEST(LogitsDigestLine, IsOneLine) {
  EXPECT_EQ(describe(LogitsDigestLine{.sha256 = "abc", .row_count = 3}),
            "logits sha256 abc over 3 rows");
}

TEST(RunReport, ShowsThePeakBesideTheBudgetAndThePlan) {
  RunReport report = sample();
  EXPECT_THAT(summary(report), HasSubstr("memory     peak unknown\n"));
  EXPECT_TRUE(to_json(report).at("memory").at("plan").is_null());
  report.peak_resident_bytes = 1'200'000'000;
  EXPECT_THAT(summary(report), HasSubstr("memory     peak 1.200 GB in use\n"));
  report.memory = PlannedMemory{.budget = {.bytes = 1'500'000'000, .reason = "as --memory says"},
                                .plan = {.budget_bytes = 1'500'000'000,
                                         .trunk_resident_bytes = 1'000'000'000,
                                         .prefill_rows = 512,
                                         .activation_bytes = 100'000'000,
                                         .expert_slots = 1234,
                                         .expert_cache_bytes = 300'000'000}};
  EXPECT_THAT(summary(report),
              HasSubstr("peak 1.200 GB in use of a budget of 1.500 GB (as --memory says), 1.400 GB "
                        "planned: 512 rows a pass, 1,234 expert slots"));
  const ordered_json memory = to_json(report).at("memory");
  EXPECT_EQ(memory.at("peak_resident_bytes"), 1'200'000'000);
  EXPECT_EQ(memory.at("plan").at("planned_bytes"), 1'400'000'000);
  EXPECT_EQ(memory.at("plan").at("unassigned_bytes"), 100'000'000);
}

}  // namespace
}  // namespace deltafin::cli
