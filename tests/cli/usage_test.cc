// What a newcomer meets first: help, and mistakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/process.h"

namespace deltafin::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(Help, OfTheProgramListsTheCommandsThatExist) {
  const std::vector<std::vector<std::string>> ways = {{}, {"--help"}, {"-h"}, {"help"}};
  for (const std::vector<std::string>& way : ways) {
    const Outcome outcome = run_program(way);
    EXPECT_EQ(outcome.exit_status, 0);
    EXPECT_THAT(outcome.err, IsEmpty());
    EXPECT_THAT(
        outcome.out,
        AllOf(HasSubstr("\n  chat "), HasSubstr("\n  run "), HasSubstr("\n  serve "),
              HasSubstr("\n  inspect "), HasSubstr("\n  logits "), HasSubstr("\n  plan "),
              HasSubstr("\n  tokenize "), HasSubstr("\n  doctor "), HasSubstr("--version")));
  }
}

TEST(Help, OfEachCommandHasExamples) {
  for (const std::string command :
       {"chat", "run", "serve", "inspect", "plan", "logits", "tokenize", "doctor"}) {
    const Outcome outcome = run_program({command, "--help"});
    EXPECT_EQ(outcome.exit_status, 0);
    EXPECT_THAT(outcome.err, IsEmpty());
    EXPECT_THAT(outcome.out, StartsWith("usage: deltafin " + command + " "));
    EXPECT_THAT(outcome.out, HasSubstr("\nexamples\n  "));
    EXPECT_EQ(run_program({"help", command}).out, outcome.out);
    for (const std::string& line : lines_of(outcome.out)) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(Help, GoesWrongWhenItCannotBeWritten) {
  EXPECT_EQ(run_with({.arguments = {"--help"}, .output_path = "/dev/full"}).exit_status, 5);
  EXPECT_EQ(run_with({.arguments = {"--help"}, .output = Output::Closed}).exit_status, 5);
  EXPECT_EQ(run_with({.arguments = {"--help"}, .output = Output::Unread}).exit_status, 0);
}

TEST(Version, IsOneLine) {
  const Outcome outcome = run_program({"--version"});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.out, testing::MatchesRegex("deltafin [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

struct Mistake {
  std::vector<std::string> arguments;
  std::string what;  // part of the first line
  std::string hint;  // part of the second
};

void PrintTo(const Mistake& mistake, std::ostream* stream) {
  for (const std::string& argument : mistake.arguments) *stream << argument << ' ';
}

class Usage : public testing::TestWithParam<Mistake> {};

TEST_P(Usage, IsRefusedInTwoLinesOnStandardError) {
  const Outcome outcome = run_program(GetParam().arguments);
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_THAT(outcome.out, IsEmpty());
  const std::vector<std::string> lines = lines_of(outcome.err);
  ASSERT_EQ(lines.size(), 2u) << outcome.err;
  EXPECT_THAT(lines[0], StartsWith("deltafin: "));
  EXPECT_THAT(lines[0], HasSubstr(GetParam().what));
  EXPECT_THAT(lines[1], HasSubstr(GetParam().hint));
}

INSTANTIATE_TEST_SUITE_P(
    Commands, Usage,
    testing::Values(
        Mistake{{"rn", "demo"}, "there is no command rn", "did you mean run?"},
        Mistake{{"inpsect", "demo"}, "there is no command inpsect", "did you mean inspect?"},
        Mistake{{"docter"}, "there is no command docter", "did you mean doctor?"},
        Mistake{{"frobnicate"}, "there is no command frobnicate", "see: deltafin --help"},
        Mistake{{"--verison"}, "there is no option --verison", "did you mean --version?"},
        Mistake{{""}, "there is no command", "see: deltafin --help"},
        Mistake{{"chat"}, "chat needs a MODEL", "a checkpoint directory, or demo"},
        Mistake{{"chat", "demo", "--prompt", "x"}, "chat has no option --prompt", ""},
        Mistake{{"demo", "--sistem", "x"}, "chat has no option --sistem", "mean --system?"}));

INSTANTIATE_TEST_SUITE_P(
    Flags, Usage,
    testing::Values(
        Mistake{{"run", "demo", "--promt", "x"}, "no option --promt", "did you mean --prompt?"},
        Mistake{{"run", "demo", "--max_tokens=5"}, "no option --max_tokens", "mean --max-tokens?"},
        Mistake{{"logits", "demo", "--ot", "x"}, "no option --ot", "did you mean --out?"},
        Mistake{{"inspect", "--jsn"}, "no option --jsn", "did you mean --json?"},
        Mistake{{"run", "demo", "-n", "5"}, "no option -n", "see: deltafin run --help"},
        Mistake{{"run", "demo", "hello"}, "unexpected argument \"hello\"", "--prompt \"hello\""},
        Mistake{{"inspect", "demo", "demo"}, "unexpected argument \"demo\"", "inspect --help"},
        Mistake{{"run", "demo", "--prompt"}, "--prompt needs a value", "see: deltafin run --help"},
        Mistake{
            {"run", "demo", "--seed", "1", "--seed", "2"}, "--seed is given more than once", ""},
        Mistake{{"run", "demo", "--stats=yes"}, "--stats takes no value", ""},
        Mistake{{"run"}, "run needs a MODEL", "a checkpoint directory, or demo"},
        Mistake{{"run", "", "--prompt", "x"}, "the one given is empty", ""},
        Mistake{{"run", "demo"}, "there is no prompt", "--prompt TEXT"},
        Mistake{{"run", "demo", "--prompt", "x", "--ids", "1"}, "more than one prompt", ""},
        Mistake{{"run", "demo", "--ids", "1", "--parse-special"}, "--parse-special is about", ""},
        Mistake{{"logits", "demo", "--ids", "1"}, "needs a file to write", "give --out FILE"},
        Mistake{{"logits", "--ids", "1", "--out", "x"}, "logits needs a MODEL", ""},
        Mistake{{"inspect"}, "inspect needs a MODEL", "--config FILE"},
        Mistake{{"inspect", "demo", "--config", "x"}, "not at both", ""},
        Mistake{{"plan"}, "plan needs a MODEL", "--config FILE"},
        Mistake{{"plan", "demo", "--config", "x"}, "not at both", ""},
        Mistake{{"tokenize"}, "tokenize needs a MODEL", ""},
        Mistake{{"tokenize", "demo", "hello"}, "unexpected argument", "--prompt \"hello\""},
        Mistake{{"tokenize", "demo", "--prompt", "x", "--prompt-file", "-"}, "more than one", ""},
        Mistake{{"tokenize", "demo", "--decode", "--parse-special"}, "--decode reads ids", ""},
        Mistake{{"doctor", "demo"}, "unexpected argument \"demo\"", "doctor --help"},
        Mistake{{"doctor", "--thread", "1"}, "no option --thread", "did you mean --threads?"}));

INSTANTIATE_TEST_SUITE_P(
    Values, Usage,
    testing::Values(
        Mistake{{"run", "demo", "--prompt", ""}, "--prompt: the prompt is empty", ""},
        Mistake{{"run", "demo", "--prompt="}, "--prompt: the prompt is empty", ""},
        Mistake{{"run", "demo", "--prompt", "a\xff"}, "not well-formed UTF-8 at byte 1", ""},
        Mistake{{"run", "demo", "--prompt-file", "-"}, "--prompt-file: the prompt is empty", ""},
        Mistake{{"run", "demo", "--ids", "1,x"}, "found \"x\" in place 2", ""},
        Mistake{{"run", "demo", "--ids", "5,2560"}, "found token id 2560 in place 2", ""},
        Mistake{{"run", "demo", "--ids", ""}, "--ids: found \"\"", ""},
        Mistake{{"run", "demo", "--prompt", "x", "--max-tokens", "-1"}, "--max-tokens: found", ""},
        Mistake{{"run", "demo", "--prompt", "x", "--threads", "0"}, "from 1 to 256", ""},
        Mistake{
            {"run", "demo", "--prompt", "x", "--prefill-rows", "0"}, "--prefill-rows: found", ""},
        Mistake{{"run", "demo", "--prompt", "x", "--isa", "z80"}, "--isa: found \"z80\"", ""},
        Mistake{{"run", "demo", "--prompt", "x", "--reader", "x"}, "--reader: found \"x\"", ""},
        Mistake{{"doctor", "--direct", "yes"}, "--direct: found \"yes\"", "doctor --help"},
        Mistake{{"doctor", "--isa", "z80"}, "--isa: found \"z80\"", "doctor --help"},
        Mistake{{"doctor", "--threads", "x"}, "--threads: found \"x\"", ""},
        Mistake{{"run", "demo", "--prompt", "x", "--expert-cache", "2G"}, "such as 2GB", ""},
        Mistake{{"run", "demo", "--prompt", "x", "--memory", "lots"}, "--memory: found", ""},
        Mistake{{"plan", "demo", "--memory", "120%"}, "up to 100%", ""},
        Mistake{{"plan", "demo", "--disk-gbps", "0"}, "--disk-gbps: found \"0\"", ""},
        Mistake{{"plan", "demo", "--context", "99999999"}, "--context: found", ""},
        Mistake{{"run", "demo", "--prompt", "x", "--temperature", "hot"}, "found \"hot\"", ""},
        Mistake{{"run", "demo", "--prompt", "x", "--top-p", "2"}, "--top-p is 2", ""},
        Mistake{{"run", "demo", "--prompt", "x", "--events", "-"},
                "is for the text alone",
                "/dev/stderr"},
        Mistake{{"logits", "demo", "--ids", "1", "--out", "/"}, "--out: / is not a file", ""}));

}  // namespace
}  // namespace deltafin::test
