// deltafin tokenize: ids out of text and text out of ids, with nothing but a tokenizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace deltafin::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::string tiny() { return in_repository("tests/golden/tiny-tokenizer"); }

TEST(Tokenize, PrintsIdsThatIdsReads) {
  const std::string ids =
      run_program({"tokenize", "demo", "--prompt", "The capital of France is"}).out;
  EXPECT_THAT(ids, testing::MatchesRegex("[0-9]+(,[0-9]+)*\n"));
  const Outcome by_text = run_program({"run", "demo", "--prompt", "The capital of France is"});
  EXPECT_EQ(by_text.exit_status, 0);
  EXPECT_EQ(run_program({"run", "demo", "--ids", ids.substr(0, ids.size() - 1)}).out, by_text.out);
}

// The folder has neither config.json nor weights.
TEST(Tokenize, GivesThePublishedIdsFromAnySource) {
  const json c = json::parse(read_file(tiny() + "/ids.json")).at(100);
  const std::string text = c.at("text");
  std::string expected;
  for (const json& id : c.at("ids")) expected += (expected.empty() ? "" : ",") + id.dump();
  expected += "\n";
  const ScratchFolder folder;
  write_file(folder / "text", text);
  for (const Outcome& outcome :
       {run_program({"tokenize", tiny(), "--prompt", text, "--parse-special"}),
        run_program({"tokenize", tiny(), "--prompt-file", folder / "text", "--parse-special"}),
        run_with({.arguments = {"tokenize", tiny(), "--parse-special"}, .input = text})}) {
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, IsEmpty());
    EXPECT_EQ(outcome.out, expected);
  }
}

TEST(Tokenize, ControlTokensAreTextUnlessParsed) {
  const std::string text = "a<|im_end|>";
  EXPECT_EQ(run_program({"tokenize", tiny(), "--prompt", text, "--parse-special"}).out, "64,382\n");
  const Outcome as_text = run_program({"tokenize", tiny(), "--prompt", text});
  EXPECT_EQ(as_text.exit_status, 0);
  EXPECT_EQ(as_text.out.find("382"), std::string::npos);
}

TEST(Tokenize, DecodesWhatItPrinted) {
  const std::string text = "two words\n\n\u00E9\U0001F642 <think>  ";
  for (const std::string& model : {std::string("demo"), tiny()}) {
    const std::string ids = run_program({"tokenize", model, "--prompt", text}).out;
    const Outcome outcome = run_with({.arguments = {"tokenize", model, "--decode"}, .input = ids});
    EXPECT_EQ(outcome.exit_status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, text);
  }
}

TEST(Tokenize, NothingIsNoTokens) {
  EXPECT_EQ(run_program({"tokenize", "demo"}).out, "\n");
  EXPECT_EQ(run_with({.arguments = {"tokenize", "demo", "--decode"}, .input = "\n"}).out, "");
}

TEST(Tokenize, PrintsJson) {
  const Outcome outcome =
      run_program({"tokenize", tiny(), "--prompt", "a<think>", "--parse-special", "--json"});
  EXPECT_EQ(outcome.exit_status, 0);
  const json report = json::parse(outcome.out);
  EXPECT_EQ(report.at("schema"), "deltafin.tokenize.v1");
  EXPECT_EQ(report.at("ids"), json::parse("[64, 378]"));
  EXPECT_EQ(report.at("text"), "a<think>");
  EXPECT_EQ(
      report.at("tokens").at(1),
      json::parse(R"({"id": 378, "text": "<think>", "bytes": "3c7468696e6b3e", "control": true})"));
  EXPECT_EQ(json::parse(
                run_program({"tokenize", tiny(), "--decode", "--prompt", "64,378", "--json"}).out),
            report);
}

TEST(Tokenize, NamesTheInputThatIsWrong) {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  for (const Case& c : {Case{{"--prompt", "a\xff"}, "--prompt: the text is not well-formed UTF-8"},
                        Case{{"--decode", "--prompt", "1,x"}, "--prompt: found \"x\" in place 2"},
                        Case{{"--decode", "--prompt", "384"},
                             "--prompt: token id 384 is outside the vocabulary 0..383"}}) {
    std::vector<std::string> arguments = {"tokenize", tiny()};
    arguments.insert(arguments.end(), c.arguments.begin(), c.arguments.end());
    const Outcome outcome = run_program(arguments);
    EXPECT_EQ(outcome.exit_status, 2);
    EXPECT_THAT(outcome.err, HasSubstr(c.message));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
  const Outcome piped = run_with({.arguments = {"tokenize", tiny()}, .input = "\xff"});
  EXPECT_THAT(piped.err, HasSubstr("standard input: the text is not well-formed UTF-8 at byte 0"));
}

TEST(Tokenize, SaysThatThereIsNoTokenizer) {
  const Outcome outcome =
      run_program({"tokenize", in_repository("tests/golden/tiny-k3"), "--prompt", "x"});
  EXPECT_EQ(outcome.exit_status, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("no tokenizer"), HasSubstr("tokenizer.json")));
}

}  // namespace
}  // namespace deltafin::test
