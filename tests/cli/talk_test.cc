// deltafin chat over pipes, as a script meets it. The bundled model knows a few questions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/process.h"

namespace deltafin::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kTurn = "The capital of France is";
constexpr const char* kAnswer = "The capital of France is Paris.\n";

Outcome talk(const std::string& input, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"chat", "demo"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_with({.arguments = arguments, .input = input});
}

struct Reading {
  uint64_t reused = 0, read = 0;
};

// What the `place`th /stats of the output says of the last turn.
Reading last_turn(const Outcome& outcome, size_t place = 0) {
  const std::regex line("last turn  ([0-9,]+) tokens? reused, ([0-9,]+) read");
  auto found = std::sregex_iterator(outcome.err.begin(), outcome.err.end(), line);
  for (; place > 0 && found != std::sregex_iterator(); --place) ++found;
  if (found == std::sregex_iterator()) {
    ADD_FAILURE() << "no such /stats in:\n" << outcome.err;
    return {};
  }
  return {std::stoull((*found)[1]), std::stoull((*found)[2])};
}

TEST(Chat, AnswersAMessageALineUntilTheInputEnds) {
  const Outcome outcome = talk(std::string(kTurn) + "\n" + kTurn);
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.out, testing::StartsWith(kAnswer));
  EXPECT_GE(lines_of(outcome.out).size(), 2u);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_EQ(run_with({.arguments = {"demo"}, .input = kTurn}).out, kAnswer);
  EXPECT_EQ(talk("").exit_status, 0);
}

TEST(Chat, ALaterTurnReadsOnlyItsOwnTokens) {
  const Outcome outcome = talk(std::string(kTurn) + "\n/stats\n" + kTurn + "\n/stats\n");
  const Reading first = last_turn(outcome, 0), second = last_turn(outcome, 1);
  EXPECT_EQ(first.reused, 0u);
  EXPECT_GT(first.read, 0u);
  // All of the first turn, and what was answered.
  EXPECT_GT(second.reused, first.read);
  // The end of the first answer and the second question: no more than the first prompt had.
  EXPECT_LE(second.read, first.read);
}

TEST(Chat, ALaterAnswerIsThatOfAModelThatReadEverythingAnew) {
  const ScratchFolder folder;
  const std::string file = folder / "talk";
  const std::string first = std::string(kTurn) + "\n/save " + file + "\n";
  const Outcome kept = talk(first + kTurn + "\n");
  std::filesystem::remove(file + ".state");
  const Outcome anew = talk("/load " + file + "\n" + kTurn + "\n/stats\n");
  EXPECT_THAT(anew.err, HasSubstr("the conversation will be read again"));
  EXPECT_EQ(last_turn(anew).reused, 0u);
  EXPECT_EQ(kAnswer + anew.out, kept.out);
}

TEST(Chat, GoesOnWithASavedConversationAndItsState) {
  const ScratchFolder folder;
  const std::string file = folder / "talk";
  const Outcome first = talk(std::string(kTurn) + "\n/save " + file + "\n" + kTurn + "\n/stats\n");
  EXPECT_THAT(first.err, HasSubstr("saved to " + file + " and, "));
  const json saved = json::parse(read_file(file));
  EXPECT_EQ(saved.at("schema"), "deltafin.chat.v1");
  EXPECT_EQ(saved.at("messages").at(0).at("content"), kTurn);
  EXPECT_EQ(saved.at("messages").at(1).at("content"), "The capital of France is Paris.");
  const Outcome second = talk("/load " + file + "\n" + kTurn + "\n/stats\n");
  EXPECT_EQ(second.exit_status, 0);
  EXPECT_THAT(second.err, HasSubstr("loaded 1 turn, "));
  EXPECT_EQ(kAnswer + second.out, first.out);
  EXPECT_EQ(last_turn(second).reused, last_turn(first).reused);
  EXPECT_EQ(last_turn(second).read, last_turn(first).read);
}

TEST(Chat, ReplacesOnlyFilesOfItsOwn) {
  const ScratchFolder folder;
  const std::string file = folder / "talk";
  const std::string save = "/save " + file + "\n";
  write_file(file, "mine");
  const Outcome refused = talk(std::string(kTurn) + "\n" + save);
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err, HasSubstr("exists already"));
  EXPECT_EQ(read_file(file), "mine");
  std::filesystem::remove(file);
  EXPECT_EQ(talk(std::string(kTurn) + "\n" + save + save).exit_status, 0);
  EXPECT_EQ(talk("/load " + file + "\n" + kTurn + "\n" + save).exit_status, 0);
  EXPECT_EQ(json::parse(read_file(file)).at("messages").size(), 4u);
  EXPECT_EQ(folder.file_count(), 2u);
}

TEST(Chat, NewForgetsTheConversation) {
  const Outcome outcome = talk(std::string(kTurn) + "\n/stats\n/new\n" + kTurn + "\n/stats\n");
  EXPECT_EQ(outcome.out, std::string(kAnswer) + kAnswer);
  EXPECT_EQ(last_turn(outcome, 1).reused, 0u);
  EXPECT_EQ(last_turn(outcome, 1).read, last_turn(outcome, 0).read);
}

TEST(Chat, AMessageThatGoesWrongIsSaidAndTheNextIsAnswered) {
  const Outcome outcome = talk("/nw\na\xff\n\n/load /nowhere/x\n" + std::string(kTurn) + "\n");
  EXPECT_EQ(outcome.exit_status, 2);  // of the first
  EXPECT_EQ(outcome.out, kAnswer);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("there is no command /nw, did you mean /new?"),
                                 HasSubstr("/save FILE, /load FILE, /stats, /help"),
                                 HasSubstr("not well-formed UTF-8"),
                                 HasSubstr("the message is empty"), HasSubstr("/nowhere/x")));
}

TEST(Chat, TwoSlashesAndABackslashAreForMessages) {
  const ScratchFolder folder;
  const std::string file = folder / "talk";
  talk("//new\\\nline\n/save " + file + "\n/help\n", {"--max-tokens", "2"});
  EXPECT_EQ(json::parse(read_file(file)).at("messages").at(0).at("content"), "/new\nline");
}

TEST(Chat, TakesTheFlagsOfASingleQuestion) {
  const Outcome shown = talk(kTurn, {"--show-reasoning"});
  EXPECT_EQ(shown.out, kAnswer);
  EXPECT_EQ(shown.err, "The user asks for the capital of France. That is Paris.\n");
  EXPECT_THAT(talk(kTurn, {"--thinking", "off", "--show-reasoning"}).err, IsEmpty());
  EXPECT_THAT(talk(kTurn, {"--max-tokens", "3"}).err, HasSubstr("ended within the reasoning"));
  const auto read = [](std::vector<std::string> more) {
    return last_turn(talk(std::string(kTurn) + "\n/stats\n", std::move(more))).read;
  };
  EXPECT_GT(read({"--system", "Be brief."}), read({}));
  EXPECT_EQ(talk("", {"--template", "qwen3"}).exit_status, 2);
}

TEST(Chat, AFullContextEndsAnAnswerOrRefusesAMessage) {
  const Outcome short_of_answer = talk(std::string(kTurn) + "\n/stats\n", {"--context", "8192"});
  const uint64_t prompt = last_turn(short_of_answer).read;
  const Outcome cut = talk(kTurn, {"--context", std::to_string(prompt + 2)});
  EXPECT_EQ(cut.exit_status, 0);
  EXPECT_THAT(cut.err, HasSubstr("the context is full"));
  const Outcome refused = talk(kTurn, {"--context", std::to_string(prompt)});
  EXPECT_EQ(refused.exit_status, 2);
  EXPECT_THAT(refused.err, HasSubstr("leaves no room for an answer\n  /new begins another"));
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_THAT(talk("", {"--context", "99999999"}).err, HasSubstr("--context: found 99999999"));
}

TEST(Chat, AnInterruptStopsTheAnswerAndKeepsWhatThereIs) {
  // At this temperature the model does not find an end.
  Process process(
      {.arguments = {"chat", "demo", "--thinking", "off", "--temperature", "50", "--seed", "1"},
       .input = "Tell me everything.\n/stats\n"});
  ASSERT_TRUE(process.wait_for_output(" "));
  process.signal(SIGINT);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("stopped after "), HasSubstr(", 1 turn\n")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("the context is full")));
  EXPECT_TRUE(outcome.out.ends_with('\n'));
}

TEST(Chat, ATerminationEndsTheSession) {
  Process process(
      {.arguments = {"chat", "demo", "--thinking", "off", "--temperature", "50", "--seed", "1"},
       .input = "Tell me everything.\n/stats\n"});
  ASSERT_TRUE(process.wait_for_output(" "));
  process.signal(SIGTERM);
  const Outcome outcome = process.finish();
  EXPECT_EQ(outcome.exit_status, 130);
  EXPECT_THAT(outcome.err, Not(HasSubstr("last turn")));
}

TEST(Chat, AReaderThatGoesAwayEndsItQuietly) {
  const Outcome outcome =
      run_with({.arguments = {"chat", "demo"}, .input = kTurn, .output = Output::Unread});
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_EQ(run_with({.arguments = {"chat", "demo"}, .input = kTurn, .output_path = "/dev/full"})
                .exit_status,
            5);
}

}  // namespace
}  // namespace deltafin::test
