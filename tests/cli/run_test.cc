// deltafin run, from prompt to text, on the bundled model and on checkpoints that are not in order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/process.h"

namespace deltafin::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kFrance = "The capital of France is";

std::vector<std::string> run_demo(std::vector<std::string> more, const char* prompt = kFrance) {
  std::vector<std::string> arguments = {"run", "demo", "--prompt", prompt};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string joined(const json& ids) {
  std::string text;
  for (const json& id : ids) text += (text.empty() ? "" : ",") + id.dump();
  return text;
}

// A text that takes many seconds to read.
std::string long_text() {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += i % 3 == 0 ? "the king " : "said unto him ";
  return text;
}

// ---------------------------------------------------------------------------------------- text ---

TEST(Run, ContinuesTheSentenceAndSaysNothingElse) {
  const Outcome outcome = run_program(run_demo({}));
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.out, " Paris.\n");
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(Run, ReadsThePromptFromAnywhere) {
  const ScratchFolder folder;
  write_file(folder / "prompt.txt", kFrance);
  EXPECT_EQ(run_program({"run", "demo", "--prompt-file", folder / "prompt.txt"}).out, " Paris.\n");
  EXPECT_EQ(run_with({.arguments = {"run", "demo", "--prompt-file", "-"}, .input = kFrance}).out,
            " Paris.\n");
  EXPECT_EQ(
      run_with({.arguments = {"run", "demo", "--prompt-file", "/dev/stdin"}, .input = kFrance}).out,
      " Paris.\n");
}

TEST(Run, TakesIdsAndGivesTextWhereThereIsATokenizer) {
  const json report = json::parse(run_program(run_demo({"--json"})).out);
  EXPECT_EQ(run_program({"run", "demo", "--ids", joined(report.at("prompt_ids"))}).out,
            " Paris.\n");
}

TEST(Run, GivesIdsWhereThereIsNoTokenizer) {
  const std::string model = in_repository("tests/golden/tiny-k3");
  const Outcome outcome = run_program({"run", model, "--ids", "1,2,3", "--max-tokens", "4"});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("[0-9]+,[0-9]+,[0-9]+,[0-9]+\n"));
  EXPECT_THAT(outcome.err, HasSubstr("the output is token ids"));
  const Outcome more = run_program({"run", model, "--ids", "1,2,3", "--max-tokens", "4", "--json"});
  const json report = json::parse(more.out);
  EXPECT_EQ(joined(report.at("ids")) + "\n", outcome.out);
  EXPECT_TRUE(report.at("text").is_null());
}

TEST(Run, NeedsATokenizerForText) {
  const Outcome outcome =
      run_program({"run", in_repository("tests/golden/tiny-k3"), "--prompt", "hello"});
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("no tokenizer"), HasSubstr("--ids 1,2,3")));
}

TEST(Run, SaysWhichTokenizerItCannotRead) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("tests/golden/tiny-qwen3-single");
  write_file(model + "/tokenizer.json",
             R"({"model": {"vocab": {}, "merges": [], "type": "Unigram"}})");
  const std::string reason =
      model + "/tokenizer.json: model.type: found \"Unigram\", expected \"BPE\"";
  const std::vector<std::string> run = {"run", model, "--prompt", "hello"};
  const std::vector<std::string> logits = {"logits", model,   "--prompt",
                                           "hello",  "--out", folder / "out.f32"};
  for (const std::vector<std::string>& arguments : {run, logits}) {
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_status, 3);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(reason), HasSubstr("give token ids: --ids 1,2,3")));
  }
  const Outcome ids = run_program({"run", model, "--ids", "1,2,3", "--max-tokens", "1"});
  EXPECT_EQ(ids.exit_status, 0);
  EXPECT_THAT(ids.err, HasSubstr("deltafin: warning: the output is token ids: " + reason));
}

TEST(Run, QwenModelsTakeAndGiveText) {
  const ScratchFolder folder;
  for (const std::string name : {"tiny-qwen3.5-moe", "tiny-qwen3-moe", "tiny-qwen3"}) {
    const std::string model = folder.copy_of("tests/golden/" + name);
    write_file(model + "/tokenizer.json",
               read_file(in_repository("tests/golden/tiny-tokenizer/tokenizer.json")));
    const Outcome outcome =
        run_program({"run", model, "--prompt", "the words<|im_end|>", "--parse-special",
                     "--max-tokens", "4", "--ignore-eos", "--json"});
    ASSERT_EQ(outcome.exit_status, 0) << outcome.err;
    const json report = json::parse(outcome.out);
    const std::string ids =
        run_program({"tokenize", model, "--prompt", "the words<|im_end|>", "--parse-special"}).out;
    EXPECT_EQ(joined(report.at("prompt_ids")) + "\n", ids);
    EXPECT_TRUE(report.at("text").is_string());
    EXPECT_EQ(run_program({"run", model, "--ids", ids.substr(0, ids.size() - 1), "--max-tokens",
                           "4", "--ignore-eos"})
                  .out,
              run_program({"run", model, "--prompt", "the words<|im_end|>", "--parse-special",
                           "--max-tokens", "4", "--ignore-eos"})
                  .out);
  }
}

// generation_config.json has a list of them.
TEST(Run, QwenModelsStopAtTheirEndOfTextTokens) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("tests/golden/tiny-qwen3");
  write_file(model + "/tokenizer.json",
             read_file(in_repository("tests/golden/tiny-tokenizer/tokenizer.json")));
  const std::vector<std::string> run = {"run",          model, "--prompt", "the words",
                                        "--max-tokens", "1",   "--json"};
  const json first = json::parse(run_program(run).out).at("ids").at(0);
  write_file(model + "/generation_config.json", R"({"eos_token_id": [381, )" + first.dump() + "]}");
  const json report = json::parse(run_program(run).out);
  EXPECT_EQ(report.at("stop_reason"), "stop_token");
  EXPECT_EQ(report.at("stop_token"), first);
  EXPECT_EQ(report.at("text"), "");
}

// The first greedy tokens of the published modelling code.
TEST(Run, GivesTheGreedyTokensOfEveryQwenLayout) {
  struct Case {
    const char* checkpoint;
    const char* golden;
  };
  for (const Case& given : {Case{"tiny-qwen3.5-moe", "tiny-qwen3.5-moe"},
                            {"tiny-qwen3-moe", "tiny-qwen3-moe"},
                            {"tiny-qwen3", "tiny-qwen3"},
                            {"tiny-qwen3-single", "tiny-qwen3"}}) {
    const std::string folder = in_repository("tests/golden/");
    const json manifest = json::parse(read_file(folder + given.golden + "/goldens/manifest.json"));
    const json& prompt = manifest.at("prompts").at(0);
    const Outcome outcome =
        run_program({"run", folder + given.checkpoint, "--ids", joined(prompt.at("tokens")),
                     "--max-tokens", "4", "--ignore-eos", "--json"});
    ASSERT_EQ(outcome.exit_status, 0) << given.checkpoint << ": " << outcome.err;
    const json& greedy = prompt.at("greedy");
    EXPECT_EQ(json::parse(outcome.out).at("ids"),
              json(std::vector<json>(greedy.begin(), greedy.begin() + 4)))
        << given.checkpoint;
  }
}

TEST(Run, ReadsControlTokensInAPromptOnlyWhenTold) {
  const json plain =
      json::parse(run_program(run_demo({"--json", "--max-tokens", "0"}, "[EOS]")).out);
  const json special = json::parse(
      run_program(run_demo({"--json", "--max-tokens", "0", "--parse-special"}, "[EOS]")).out);
  EXPECT_GT(plain.at("prompt_ids").size(), 1u);
  EXPECT_EQ(special.at("prompt_ids").size(), 1u);
}

TEST(Run, GeneratesAsManyTokensAsAsked) {
  const json report =
      json::parse(run_program(run_demo({"--json", "--ignore-eos", "--max-tokens", "9"})).out);
  EXPECT_EQ(report.at("ids").size(), 9u);
  EXPECT_EQ(report.at("stop_reason"), "max_tokens");
  const Outcome none = run_program(run_demo({"--max-tokens", "0"}));
  EXPECT_EQ(none.exit_status, 0);
  EXPECT_THAT(none.out, IsEmpty());
}

TEST(Run, StopsByItselfHoweverManyTokensAreAllowed) {
  const Outcome outcome = run_program(run_demo({"--max-tokens", "18446744073709551615"}));
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.out, " Paris.\n");
}

TEST(Run, TakesAFolderCalledDemoOnlyAsAPath) {
  const ScratchFolder folder;
  fs::create_directory(folder.path() / "demo");
  const Outcome bundled = run_with({.arguments = run_demo({}), .folder = folder.path().string()});
  EXPECT_EQ(bundled.out, " Paris.\n");
  const Outcome path =
      run_with({.arguments = {"run", "./demo", "--prompt", "x"}, .folder = folder.path().string()});
  EXPECT_EQ(path.exit_status, 3);
  EXPECT_THAT(path.err, HasSubstr("./demo: "));
}

TEST(Run, FindsTheBundledModelWhereTheEnvironmentSays) {
  const ScratchFolder folder;
  const std::string copy = folder.copy_of("models/demo");
  const Outcome outcome =
      run_with({.arguments = run_demo({"--json"}), .environment = {"DELTAFIN_DEMO=" + copy}});
  EXPECT_EQ(json::parse(outcome.out).at("model").at("directory"), copy);
  const Outcome lost =
      run_with({.arguments = run_demo({}), .environment = {"DELTAFIN_DEMO=/nowhere"}});
  EXPECT_EQ(lost.exit_status, 3);
  EXPECT_THAT(lost.err, HasSubstr("the bundled model is not there"));
}

// ------------------------------------------------------------------------------------ sampling ---

TEST(RunSampling, RepeatsWithASeedAndDiffersWithout) {
  const auto text = [](const char* seed) {
    return run_program(run_demo({"--temperature", "1.5", "--ignore-eos", "--max-tokens", "12",
                                 "--seed", seed},
                                "In"))
        .out;
  };
  EXPECT_EQ(text("7"), text("7"));
  const std::set<std::string> texts = {text("1"), text("2"), text("3")};
  EXPECT_GT(texts.size(), 1u);
}

TEST(RunSampling, TellsTheSeedItDrew) {
  const Outcome drawn = run_program(run_demo({"--sample", "--max-tokens", "8"}, "In"));
  ASSERT_THAT(drawn.err, StartsWith("seed "));
  const std::string seed = drawn.err.substr(5, drawn.err.find(' ', 5) - 5);
  const Outcome again =
      run_program(run_demo({"--sample", "--max-tokens", "8", "--seed", seed}, "In"));
  EXPECT_EQ(again.out, drawn.out);
  EXPECT_THAT(again.err, IsEmpty());
}

TEST(RunSampling, TakesParametersOfTheModelUnlessFlagsSayOtherwise) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  write_file(model + "/generation_config.json",
             R"({"eos_token_id": [2306], "do_sample": true, "temperature": 0.6, "top_k": 20})");
  const auto sampling = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run",    model,          "--prompt", "x",
                                          "--json", "--max-tokens", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(run_program(arguments).out).at("sampling");
  };
  EXPECT_EQ(sampling({}).at("mode"), "greedy");
  EXPECT_EQ(sampling({"--sample"}).at("temperature"), 0.6);
  EXPECT_EQ(sampling({"--sample"}).at("top_k"), 20);
  EXPECT_EQ(sampling({"--top-k", "5"}).at("top_k"), 5);
  EXPECT_EQ(sampling({"--top-k", "5"}).at("temperature"), 0.6);
  EXPECT_EQ(sampling({"--sample", "--temperature", "0"}).at("mode"), "greedy");
}

TEST(RunSampling, RefusesABadGenerationConfig) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  write_file(model + "/generation_config.json", R"({"temperature": "hot"})");
  const Outcome outcome = run_program({"run", model, "--prompt", "x"});
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_THAT(outcome.err, HasSubstr("generation_config.json: temperature: found"));
}

// ------------------------------------------------------------------------------------- reports ---

TEST(RunReports, GoToStandardError) {
  const Outcome outcome = run_program(run_demo({"--stats", "--logits-digest"}));
  EXPECT_EQ(outcome.out, " Paris.\n");
  for (const char* part : {"prompt  ", "generated  ", "experts  ", "cache  ", "trunk  ", "state  ",
                           "machine  ", "choice     greedy", "tokens/s"})
    EXPECT_THAT(outcome.err, HasSubstr(part));
  EXPECT_THAT(lines_of(outcome.err).back(),
              testing::MatchesRegex("logits sha256 [0-9a-f]{64} over [0-9]+ rows"));
}

TEST(RunReports, TheDigestDoesNotDependOnTheMachine) {
  const auto digest = [](std::vector<std::string> more) {
    std::vector<std::string> arguments =
        run_demo({"--json", "--logits-digest", "--max-tokens", "6"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(run_program(arguments).out)
        .at("logits_digest")
        .at("sha256")
        .get<std::string>();
  };
  const std::string expected = digest({});
  EXPECT_EQ(digest({"--threads", "1"}), expected);
  EXPECT_EQ(digest({"--threads", "3"}), expected);
  EXPECT_EQ(digest({"--isa", "baseline"}), expected);
  EXPECT_EQ(digest({"--expert-cache", "0"}), expected);
  for (const char* direct : {"auto", "on", "off"}) {
    EXPECT_EQ(digest({"--reader", "auto", "--direct", direct}), expected);
    EXPECT_EQ(digest({"--reader", "pread", "--direct", direct}), expected);
  }
  EXPECT_EQ(digest({"--prefill-rows", "2"}), expected);
}

TEST(RunReports, JsonIsTheOnlyOutput) {
  const Outcome outcome = run_program(run_demo({"--json", "--threads", "1", "--isa", "baseline"}));
  const json report = json::parse(outcome.out);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_EQ(report.at("schema"), "deltafin.run.v1");
  EXPECT_EQ(report.at("text"), " Paris.");
  EXPECT_EQ(report.at("stop_reason"), "stop_token");
  EXPECT_EQ(report.at("stop_token"), 2305);  // [EOS]
  EXPECT_EQ(report.at("machine").at("isa"), "baseline");
  EXPECT_EQ(report.at("machine").at("threads"), 1);
  EXPECT_GT(report.at("counters").at("expert_bytes_read"), 0);
  EXPECT_GT(report.at("timings").at("prefill_seconds"), 0.0);
}

// -------------------------------------------------------------------------------------- output ---

TEST(RunOutput, EndsQuietlyWhenItsReaderLeaves) {
  const Outcome outcome =
      run_with({.arguments = run_demo({"--ignore-eos", "--max-tokens", "100000000"}),
                .output = Output::Unread});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
}

TEST(RunOutput, FailsWhenTheDiskIsFull) {
  for (const char* form : {"--stats", "--json"}) {
    const Outcome outcome = run_with({.arguments = run_demo({form}), .output_path = "/dev/full"});
    EXPECT_EQ(outcome.exit_status, 5);
    EXPECT_THAT(outcome.err, HasSubstr("deltafin: standard output: cannot write: No space left"));
  }
}

TEST(RunOutput, FailsWhenThereIsNone) {
  // The file that is opened next must not be taken for standard output.
  const ScratchFolder folder;
  const std::string path = folder / "run.jsonl";
  const Outcome outcome =
      run_with({.arguments = run_demo({"--events", path}), .output = Output::Closed});
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_THAT(outcome.err, HasSubstr("standard output: cannot write"));
  for (const std::string& line : lines_of(read_file(path))) EXPECT_TRUE(json::accept(line)) << line;
}

// -------------------------------------------------------------------------------------- events ---

std::vector<json> events_in(const std::string& path) {
  std::vector<json> events;
  for (const std::string& line : lines_of(read_file(path))) events.push_back(json::parse(line));
  return events;
}

TEST(RunEvents, TellTheWholeRun) {
  const ScratchFolder folder;
  const std::string path = folder / "run.jsonl";
  const Outcome outcome = run_program(run_demo({"--events", path, "--logits-digest"}));
  EXPECT_EQ(outcome.exit_status, 0);
  const std::vector<json> events = events_in(path);
  ASSERT_GE(events.size(), 4u);

  const json& start = events.front();
  EXPECT_EQ(start.at("event"), "run_start");
  EXPECT_EQ(start.at("schema"), "deltafin.run_event.v1");
  EXPECT_EQ(start.at("prompt_ids").size(), 5u);
  EXPECT_EQ(start.at("options").at("max_tokens"), 256);
  EXPECT_EQ(start.at("sampling").at("mode"), "greedy");
  // config.json has the second, generation_config.json both.
  EXPECT_EQ(start.at("stop_ids"), json::parse("[2305, 2306]"));

  const json& end = events.back();
  EXPECT_EQ(end.at("event"), "run_end");
  EXPECT_EQ(end.at("stop_reason"), "stop_token");
  EXPECT_EQ(end.at("text"), " Paris.");
  EXPECT_EQ(end.at("logits_digest").at("sha256").get<std::string>().size(), 64u);
  EXPECT_TRUE(end.at("counters").contains("expert_hits"));

  std::string text;
  std::vector<int> ids;
  size_t prefill_done = 0;
  for (const json& event : events) {
    if (event.at("event") == "prefill_done") ++prefill_done;
    if (event.at("event") != "token" || event.at("stop") == true) continue;
    EXPECT_EQ(prefill_done, 1u);
    EXPECT_EQ(event.at("index"), ids.size());
    EXPECT_GT(event.at("elapsed_seconds"), 0.0);
    ids.push_back(event.at("id"));
    text += event.at("text").get<std::string>();
  }
  EXPECT_EQ(text, " Paris.");
  EXPECT_EQ(json(ids), end.at("ids"));
}

TEST(RunEvents, DoNotOverwriteAFileUnlessForced) {
  const ScratchFolder folder;
  const std::string path = folder / "run.jsonl";
  write_file(path, "precious");
  const Outcome refused = run_program(run_demo({"--events", path}));
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("--events: " + path + " exists already"), HasSubstr("--force")));
  EXPECT_EQ(read_file(path), "precious");
  EXPECT_EQ(run_program(run_demo({"--events", path, "--force"})).exit_status, 0);
  EXPECT_THAT(read_file(path), StartsWith("{\"event\":\"run_start\""));
}

TEST(RunEvents, MayGoToStandardError) {
  const Outcome outcome = run_program(run_demo({"--events", "/dev/stderr"}));
  EXPECT_EQ(outcome.exit_status, 0);
  for (const std::string& line : lines_of(outcome.err)) EXPECT_TRUE(json::accept(line)) << line;
}

TEST(RunEvents, EndTheRunWhenTheDiskIsFull) {
  const Outcome outcome = run_program(run_demo({"--events", "/dev/full"}));
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_THAT(outcome.err, HasSubstr("/dev/full: cannot write: No space left"));
}

TEST(RunEvents, StopARunWhoseDiskFillsUpOnTheWay) {
  const ScratchFolder folder;
  const Outcome outcome =
      run_with({.arguments = run_demo({"--events", folder / "run.jsonl", "--ignore-eos",
                                       "--max-tokens", "100000000"}),
                .file_bytes_limit = 4096});
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_THAT(outcome.err, HasSubstr("run.jsonl: cannot write: File too large"));
  EXPECT_THAT(outcome.out, StartsWith(" Paris."));
}

TEST(RunEvents, TellWhyARunFailed) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  fs::remove(model + "/model-00003-of-000009.safetensors");
  const std::string path = folder / "run.jsonl";
  EXPECT_EQ(run_program({"run", model, "--prompt", "x", "--events", path}).exit_status, 3);
  const json error = events_in(path).back();
  EXPECT_EQ(error.at("event"), "run_error");
  EXPECT_EQ(error.at("exit_code"), 3);
  EXPECT_EQ(error.at("kind"), "bad or incomplete model");
  EXPECT_THAT(error.at("message").get<std::string>(), HasSubstr("model-00003"));
}

// ---------------------------------------------------------------------------------- interrupts ---

TEST(RunInterrupt, KeepsTheTextThatIsThere) {
  for (const auto& [number, name] : {std::pair(SIGINT, "Ctrl-C"), std::pair(SIGTERM, "SIGTERM")}) {
    Process process({.arguments = run_demo({"--ignore-eos", "--max-tokens", "100000000"})});
    ASSERT_TRUE(process.wait_for_output("Paris."));
    process.signal(number);
    const Outcome outcome = process.finish();
    EXPECT_EQ(outcome.exit_status, 130);
    EXPECT_THAT(outcome.out, AllOf(StartsWith(" Paris."), EndsWith("\n")));
    EXPECT_THAT(outcome.err, HasSubstr(std::string("stopped by ") + name + " after "));
    EXPECT_THAT(outcome.err, HasSubstr(" tokens\n"));
  }
}

TEST(RunInterrupt, StillPrintsTheReport) {
  const ScratchFolder folder;
  const std::string path = folder / "run.jsonl";
  Process process({.arguments = run_demo(
                       {"--ignore-eos", "--max-tokens", "100000000", "--json", "--events", path})});
  ASSERT_TRUE(process.wait_for_file(path, "\"index\":3"));
  process.signal(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_status, 130);
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("stop_reason"), "interrupted");
  EXPECT_GE(report.at("ids").size(), 4u);
  EXPECT_EQ(events_in(path).back().at("stop_reason"), "interrupted");
}

TEST(RunInterrupt, EndsAPrefillSoon) {
  const ScratchFolder folder;
  const std::string path = folder / "run.jsonl";
  write_file(folder / "prompt.txt", long_text());
  Process process({.arguments = {"run", "demo", "--prompt-file", folder / "prompt.txt", "--events",
                                 path, "--prefill-rows", "64"}});
  ASSERT_TRUE(process.wait_for_file(path, "prefill_progress"));
  process.signal(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_status, 130);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("stopped by Ctrl-C after 0 tokens\n"));
  for (const json& event : events_in(path)) {
    if (event.at("event") != "prefill_progress") continue;
    EXPECT_GT(event.at("fraction"), 0.0);
    EXPECT_LT(event.at("fraction"), 1.0);
  }
}

TEST(RunInterrupt, EndsTheWaitForAPrompt) {
  // A pipe whose writer never comes.
  const ScratchFolder folder;
  ASSERT_EQ(::mkfifo((folder / "prompt").c_str(), 0600), 0);
  Process process({.arguments = {"run", "demo", "--prompt-file", folder / "prompt"}});
  ASSERT_TRUE(process.wait_until_it_waits());
  process.signal(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_status, 130);
  EXPECT_EQ(outcome.err, "deltafin: stopped by Ctrl-C\n");
}

// ------------------------------------------------------------------------------- broken models ---

TEST(RunRefuses, WhatIsNoCheckpoint) {
  const ScratchFolder folder;
  write_file(folder / "file", "text");
  fs::create_directory(folder.path() / "empty");
  struct Case {
    std::string model, message;
  };
  for (const Case& one :
       {Case{folder / "nothing", "no such folder"}, Case{folder / "file", "is a file"},
        Case{folder / "empty", "has no config.json"}}) {
    const Outcome outcome = run_program({"run", one.model, "--prompt", "x"});
    EXPECT_EQ(outcome.exit_status, 3) << one.model;
    EXPECT_THAT(outcome.out, IsEmpty());
    EXPECT_THAT(outcome.err, StartsWith("deltafin: " + one.model + ": "));
    EXPECT_THAT(outcome.err, HasSubstr(one.message));
    EXPECT_THAT(outcome.err, EndsWith("exit 3 (bad or incomplete model)\n"));
  }
}

TEST(RunRefuses, AMissingShardByName) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("tests/golden/tiny-k3");
  fs::remove(model + "/model-00004-of-000011.safetensors");
  const Outcome outcome = run_program({"run", model, "--ids", "1"});
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_THAT(outcome.err, HasSubstr("model-00004-of-000011.safetensors"));
}

TEST(RunRefuses, ADamagedConfigOrTokenizer) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  write_file(model + "/tiktoken.model", "not a rank file\n");
  const Outcome tokenizer = run_program({"run", model, "--prompt", "x"});
  EXPECT_EQ(tokenizer.exit_status, 3);
  EXPECT_THAT(tokenizer.err, HasSubstr("tiktoken.model"));
  write_file(model + "/config.json", "{\"architectures\": [\"Unheard\"");
  const Outcome config = run_program({"run", model, "--prompt", "x"});
  EXPECT_EQ(config.exit_status, 3);
  EXPECT_THAT(config.err, HasSubstr("config.json"));
}

TEST(RunRefuses, AShardThatCannotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  const std::string shard = model + "/model-00003-of-000009.safetensors";
  fs::permissions(shard, fs::perms::none);
  const Outcome outcome = run_program({"run", model, "--prompt", "x"});
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_THAT(outcome.err, HasSubstr(shard + ": cannot open: Permission denied"));
}

// Sanitizers reserve terabytes of address space, which this test takes away.
TEST(RunRefuses, WhatDoesNotFitIntoMemory) {
  if (kSanitized) GTEST_SKIP() << "not with a sanitizer";
  const ScratchFolder folder;
  write_file(folder / "prompt.txt", long_text());
  const Outcome outcome = run_with(
      {.arguments = {"run", "demo", "--prompt-file", folder / "prompt.txt", "--threads", "1"},
       .memory_bytes_limit = 300 << 20});
  EXPECT_EQ(outcome.exit_status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("memory"));
  EXPECT_THAT(outcome.err, EndsWith("exit 4 (over the memory budget)\n"));
}

TEST(RunRefuses, APromptFileThatIsNotThere) {
  const Outcome outcome = run_program({"run", "demo", "--prompt-file", "/nowhere/prompt.txt"});
  EXPECT_EQ(outcome.exit_status, 5);
  EXPECT_THAT(outcome.err, HasSubstr("cannot open /nowhere/prompt.txt"));
}

TEST(RunWarns, AboutConfigFieldsItDoesNotKnow) {
  const ScratchFolder folder;
  const std::string model = folder.copy_of("models/demo");
  json config = json::parse(read_file(model + "/config.json"));
  config["text_config"]["brand_new_feature"] = 1;
  write_file(model + "/config.json", config.dump());
  const Outcome outcome = run_program({"run", model, "--prompt", kFrance});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_EQ(outcome.out, " Paris.\n");
  EXPECT_EQ(lines_of(outcome.err).size(), 1u);
  EXPECT_THAT(outcome.err, HasSubstr("warning: config.json has a field that is unknown here"));
  EXPECT_THAT(outcome.err, HasSubstr("text_config.brand_new_feature"));
}

}  // namespace
}  // namespace deltafin::test
