#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Shop {
  std::optional<std::string> model, prompt;
  std::optional<uint64_t> seed;
  bool stats = false;
  CommandLine line{"shop MODEL [options]", "Sells things."};

  Shop() {
    line.argument("MODEL", "what to open", model);
    line.group("prompt");
    line.flag("--prompt", "TEXT", "what to say", text_into(prompt));
    line.flag("--seed", "N", "where chance starts", integer_into(seed, 0, 100));
    line.toggle("--stats", "count things", stats);
    line.example("deltafin shop demo", "opens the demo");
  }
  std::string error(const std::vector<std::string>& arguments) {
    const Result<CommandLine::Parsed> parsed = line.parse(arguments);
    if (parsed) return "";
    EXPECT_EQ(parsed.error().code, ErrorCode::Usage);
    return parsed.error().what;
  }
};

TEST(CommandLine, FillsWhatIsGivenInAnyOrder) {
  Shop shop;
  EXPECT_EQ(shop.line.parse({"--prompt", "hello", "demo", "--seed=7", "--stats"}),
            CommandLine::Parsed::Run);
  EXPECT_EQ(shop.model, "demo");
  EXPECT_EQ(shop.prompt, "hello");
  EXPECT_EQ(shop.seed, 7u);
  EXPECT_TRUE(shop.stats);
}

TEST(CommandLine, TakesADoubleDashForTheEndOfItsFlags) {
  Shop shop;
  EXPECT_EQ(shop.line.parse({"--stats", "--", "--demo"}), CommandLine::Parsed::Run);
  EXPECT_EQ(shop.model, "--demo");
  EXPECT_EQ(Shop().line.parse({"demo", "--"}), CommandLine::Parsed::Run);
}

TEST(CommandLine, LeavesAloneWhatIsNotGiven) {
  Shop shop;
  EXPECT_EQ(shop.line.parse({}), CommandLine::Parsed::Run);
  EXPECT_EQ(shop.model, std::nullopt);
  EXPECT_EQ(shop.seed, std::nullopt);
  EXPECT_FALSE(shop.stats);
}

TEST(CommandLine, TakesAnyTextAsAValue) {
  for (const char* text : {"", "-x", "--seed", "--help", "[EOS]", "[a,b]", "{}", "\"quoted\"",
                           "a=b", "%%", "'", "\n", "--", "1,2", "\xff"}) {
    Shop shop;
    EXPECT_EQ(shop.line.parse({"demo", "--prompt", text}), CommandLine::Parsed::Run) << text;
    EXPECT_EQ(shop.prompt, text);
    EXPECT_EQ(shop.model, "demo");
  }
}

TEST(CommandLine, TakesAnyTextBehindAnEqualsSign) {
  for (const char* text : {"", "-x", "--seed", "[EOS]", "a=b", "=", "x="}) {
    Shop shop;
    EXPECT_EQ(shop.line.parse({std::string("--prompt=") + text, "demo"}), CommandLine::Parsed::Run);
    EXPECT_EQ(shop.prompt, text);
    EXPECT_EQ(shop.model, "demo");
  }
}

TEST(CommandLine, AsksWhetherATypoMeantAnotherFlag) {
  EXPECT_EQ(Shop().error({"demo", "--promt", "x"}),
            "shop has no option --promt\n  did you mean --prompt?");
  EXPECT_EQ(Shop().error({"--seed_=5"}), "shop has no option --seed_\n  did you mean --seed?");
  EXPECT_EQ(Shop().error({"-stats"}), "shop has no option -stats\n  did you mean --stats?");
  EXPECT_EQ(Shop().error({"--hlep"}), "shop has no option --hlep\n  did you mean --help?");
  EXPECT_EQ(Shop().error({"-n", "5"}), "shop has no option -n\n  see: deltafin shop --help");
}

TEST(CommandLine, SaysWhereAStrayWordBelongs) {
  EXPECT_THAT(Shop().error({"demo", "hello"}),
              HasSubstr("unexpected argument \"hello\"\n  the prompt stands behind a flag"));
}

TEST(CommandLine, NamesTheFlagWhoseValueIsMissingOrWrong) {
  EXPECT_EQ(Shop().error({"demo", "--seed"}), "--seed needs a value\n  see: deltafin shop --help");
  EXPECT_THAT(Shop().error({"--seed", "x"}),
              HasSubstr("--seed: found \"x\", expected an integer from 0 to 100"));
  EXPECT_THAT(Shop().error({"--seed", "-1"}), HasSubstr("--seed: found \"-1\""));
  EXPECT_THAT(Shop().error({"--seed", "1", "--seed", "2"}),
              HasSubstr("--seed is given more than once"));
  EXPECT_THAT(Shop().error({"--stats=5"}), HasSubstr("--stats takes no value"));
}

TEST(CommandLine, HelpWinsOverEveryMistake) {
  EXPECT_EQ(Shop().line.parse({"--bogus", "--help", "--seed", "x"}), CommandLine::Parsed::Help);
  EXPECT_EQ(Shop().line.parse({"-h"}), CommandLine::Parsed::Help);
}

TEST(CommandLine, HelpShowsEverythingItTakes) {
  const Shop shop;
  const std::string help = shop.line.help();
  EXPECT_THAT(help, HasSubstr("usage: deltafin shop MODEL [options]\n\nSells things.\n"));
  EXPECT_THAT(help, HasSubstr("  MODEL                     what to open\n"));
  EXPECT_THAT(help, HasSubstr("\nprompt\n  --prompt TEXT             what to say\n"));
  EXPECT_THAT(help, HasSubstr("  --stats                   count things\n"));
  EXPECT_THAT(help, HasSubstr("examples\n  deltafin shop demo\n      opens the demo\n"));
  EXPECT_THAT(shop.line.flag_names(), ElementsAre("--prompt", "--seed", "--stats"));
}

TEST(Wrapped, BreaksBetweenWordsAndKeepsLineBreaks) {
  EXPECT_EQ(wrapped("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(wrapped("one\ntwo", 4, 80), "one\n    two");
  EXPECT_EQ(wrapped("incomprehensibilities", 2, 9), "incomprehensibilities");
  EXPECT_EQ(wrapped("", 2, 9), "");
}

}  // namespace
}  // namespace deltafin::cli
