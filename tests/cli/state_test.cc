// deltafin run --save-state and --load-state, as their user meets them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace deltafin::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> demo(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"run", "demo", "--ignore-eos"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

constexpr const char* kOnce = "Once upon a time";

json ids_of(const Outcome& outcome) { return json::parse(outcome.out).at("ids"); }

TEST(RunState, GoesOnWithTheTokensOfAnUninterruptedRun) {
  const ScratchFolder folder;
  const std::string file = folder / "state";
  const json whole = ids_of(run_program(demo({"--prompt", kOnce, "--max-tokens", "9", "--json"})));
  const Outcome first =
      run_program(demo({"--prompt", kOnce, "--max-tokens", "4", "--save-state", file, "--json"}));
  EXPECT_EQ(first.err, "saved 8 tokens to " + file + "\n");
  const Outcome second =
      run_program(demo({"--load-state", file, "--max-tokens", "5", "--json", "--threads", "1"}));
  EXPECT_EQ(second.exit_status, 0);
  EXPECT_EQ(second.err, "loaded 8 tokens from " + file + "\n");
  json both = ids_of(first);
  for (const json& id : ids_of(second)) both.push_back(id);
  EXPECT_EQ(both, whole);
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(RunState, OfAReadPromptGivesTheSameLogitsAndReadsNothingAgain) {
  const ScratchFolder folder;
  const std::string file = folder / "state";
  const std::vector<std::string> length = {
      "--max-tokens",         "5",   "--seed",          "3",     "--temperature", "1.2",
      "--repetition-penalty", "1.3", "--logits-digest", "--json"};
  std::vector<std::string> direct = demo({"--prompt", kOnce});
  direct.insert(direct.end(), length.begin(), length.end());
  run_program(demo({"--prompt", kOnce, "--max-tokens", "0", "--save-state", file}));
  std::vector<std::string> loaded = demo({"--load-state", file});
  loaded.insert(loaded.end(), length.begin(), length.end());
  const json expected = json::parse(run_program(direct).out);
  const json report = json::parse(run_program(loaded).out);
  EXPECT_EQ(report.at("logits_digest"), expected.at("logits_digest"));
  EXPECT_EQ(report.at("ids"), expected.at("ids"));
  EXPECT_EQ(report.at("counters").at("rows"), 4);  // one for each token but the first
  EXPECT_EQ(report.at("loaded_state").at("waiting"), 0);
}

TEST(RunState, TakesANewPromptBehindTheOld) {
  const ScratchFolder folder;
  const std::string file = folder / "state";
  const std::string model = in_repository("tests/golden/tiny-qwen3");
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", model, "--ignore-eos"});
    return run_program(more);
  };
  run({"--ids", "1,2,3", "--max-tokens", "0", "--save-state", file});
  EXPECT_EQ(run({"--load-state", file, "--ids", "4,5", "--max-tokens", "3"}).out,
            run({"--ids", "1,2,3,4,5", "--max-tokens", "3"}).out);
  // Saving over the loaded state needs --force.
  const Outcome refused = run({"--load-state", file, "--save-state", file, "--max-tokens", "1"});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err, HasSubstr("exists already"));
  const Outcome forced =
      run({"--load-state", file, "--save-state", file, "--max-tokens", "1", "--force"});
  EXPECT_EQ(forced.exit_status, 0);
  EXPECT_THAT(forced.err, HasSubstr("saved 3 tokens"));
}

TEST(RunState, IsInTheEvents) {
  const ScratchFolder folder;
  const std::string file = folder / "state", events = folder / "events";
  run_program(demo({"--prompt", kOnce, "--max-tokens", "2", "--save-state", file}));
  run_program(demo({"--load-state", file, "--save-state", folder / "next", "--max-tokens", "2",
                    "--events", events}));
  const std::vector<std::string> lines = lines_of(read_file(events));
  const json start = json::parse(lines.front()), end = json::parse(lines.back());
  EXPECT_EQ(start.at("loaded_state").at("tokens"), 6);
  EXPECT_EQ(start.at("loaded_state").at("waiting"), 1);
  EXPECT_THAT(start.at("prompt_ids"), IsEmpty());
  EXPECT_EQ(end.at("saved_state").at("tokens"), 8);
  EXPECT_EQ(end.at("saved_state").at("bytes"), read_file(folder / "next").size());
}

TEST(RunState, IsRefusedByAnotherModelAndWhenItIsDamaged) {
  const ScratchFolder folder;
  const std::string file = folder / "state";
  run_program(demo({"--prompt", kOnce, "--max-tokens", "2", "--save-state", file}));
  const Outcome other = run_program(
      {"run", in_repository("tests/golden/tiny-k3"), "--load-state", file, "--max-tokens", "1"});
  EXPECT_EQ(other.exit_status, 2);
  EXPECT_THAT(other.err,
              AllOf(HasSubstr("--load-state: " + file + ": was saved from another model"),
                    HasSubstr("\n  read the prompt again without --load-state")));
  std::string bytes = read_file(file);
  bytes[bytes.size() / 2] ^= 1;
  write_file(file, bytes);
  const Outcome damaged = run_program(demo({"--load-state", file}));
  EXPECT_EQ(damaged.exit_status, 5);
  EXPECT_THAT(damaged.err, HasSubstr("damaged: found a content with the checksum"));
  EXPECT_THAT(damaged.out, IsEmpty());
  write_file(file, bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(run_program(demo({"--load-state", file})).exit_status, 5);
  EXPECT_EQ(run_program(demo({"--load-state", folder / "none"})).exit_status, 5);
}

// The limit on file sizes stands in for a full disk.
TEST(RunState, LeavesTheOldOneWhenTheNewOneCannotBeWritten) {
  const ScratchFolder folder;
  const std::string file = folder / "state";
  write_file(file, "old");
  const Outcome outcome = run_with(
      {.arguments = demo({"--prompt", kOnce, "--max-tokens", "2", "--save-state", file, "--force"}),
       .file_bytes_limit = 10'000});
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_THAT(outcome.err, HasSubstr("--save-state: " + file + ": cannot write"));
  EXPECT_EQ(read_file(file), "old");
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(RunState, KeepsWhatWasGeneratedBeforeAnInterrupt) {
  const ScratchFolder folder;
  const std::string file = folder / "state", events = folder / "events";
  Process process({.arguments = demo({"--prompt", kOnce, "--max-tokens", "100000", "--save-state",
                                      file, "--events", events})});
  ASSERT_TRUE(process.wait_for_file(events, "\"index\":3"));
  process.signal(SIGINT);
  const Outcome first = process.finish();
  EXPECT_EQ(first.exit_status, 130);
  EXPECT_THAT(first.err, HasSubstr("saved "));
  const Outcome second = run_program(demo({"--load-state", file, "--max-tokens", "3"}));
  EXPECT_EQ(second.exit_status, 0);
  const size_t count = json::parse(lines_of(read_file(events)).back()).at("ids").size();
  const std::string whole =
      run_program(demo({"--prompt", kOnce, "--max-tokens", std::to_string(count + 3)})).out;
  const std::string cut = first.out.substr(0, first.out.size() - 1);  // the added line break
  EXPECT_EQ(cut + second.out, whole);
}

TEST(RunState, HasNothingToSaveWhenNothingWasRead) {
  const ScratchFolder folder;
  std::string text;
  for (int i = 0; i < 5'000; ++i) text += "said unto him ";
  Process process({.arguments = demo({"--prompt-file", "-", "--save-state", folder / "state",
                                      "--events", folder / "events", "--prefill-rows", "100000"}),
                   .input = text});
  ASSERT_TRUE(process.wait_for_file(folder / "events", "prefill_progress"));
  process.signal(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_status, 130);
  EXPECT_THAT(outcome.err, HasSubstr("is not written: no token has been read"));
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(RunState, NeedsAPromptOrAState) {
  EXPECT_EQ(run_program({"run", "demo", "--save-state", "x"}).exit_status, 2);
}

}  // namespace
}  // namespace deltafin::test
