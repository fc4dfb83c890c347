// The bundled model through the program: the answers on record, with the same bits whatever
// computes them. tools/demo_model/record_goldens writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace deltafin::test {
namespace {

using nlohmann::json;

json answers() {
  return json::parse(read_file(in_repository("tests/golden/golden-demo/answers.json")));
}

json run(const json& options, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"run", "demo"};
  for (const json& option : options) arguments.push_back(option.get<std::string>());
  arguments.insert(arguments.end(), {"--json", "--logits-digest"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Outcome outcome = run_program(arguments);
  EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
  return json::parse(outcome.out);
}

void expect_the_answers_on_record(const std::vector<std::string>& more) {
  for (const json& answer : answers()) {
    const json report = run(answer.at("options"), more);
    const std::string what = answer.at("options").dump() + " " + testing::PrintToString(more);
    EXPECT_EQ(report.at("ids"), answer.at("ids")) << what;
    EXPECT_EQ(report.at("text"), answer.at("text")) << what;
    EXPECT_EQ(report.at("logits_digest").at("sha256"), answer.at("digest")) << what;
  }
}

TEST(Demo, GivesTheAnswersOnRecordWithAnyNumberOfThreads) {
  ASSERT_EQ(answers().size(), 5u);
  for (const char* threads : {"1", "2", "3"}) expect_the_answers_on_record({"--threads", threads});
}

TEST(Demo, GivesTheAnswersOnRecordWithEveryInstructionSet) {
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    const Outcome probe =
        run_program({"run", "demo", "--ids", "1", "--max-tokens", "0", "--isa", isa});
    if (probe.exit_status != 0) continue;  // not on this processor
    expect_the_answers_on_record({"--isa", isa});
  }
}

TEST(Demo, GivesTheAnswersOnRecordInLittleMemory) {
  expect_the_answers_on_record({"--prefill-rows", "3", "--expert-cache", "100KB", "--no-hints"});
}

}  // namespace
}  // namespace deltafin::test
