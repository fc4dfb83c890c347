#include "text/chat/stop_strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "base/philox.h"
#include "text/test_text.h"
#include "text/utf8.h"

namespace deltafin::text {
namespace {

using testing::HasSubstr;

StopStrings stops(const std::vector<std::string>& list) {
  return StopStrings::create(list).value();
}

struct Outcome {
  std::string text;
  std::optional<size_t> stopped;
  bool operator==(const Outcome&) const = default;
};

Outcome run(const StopStrings& set, const std::vector<std::string>& pieces) {
  StopMatcher matcher(set);
  Outcome outcome;
  for (const std::string& piece : pieces) outcome.text += matcher.push(piece);
  outcome.text += matcher.finish();
  outcome.stopped = matcher.stopped();
  return outcome;
}

// By looking at every end in turn.
Outcome slow(const std::vector<std::string>& list, const std::string& text) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::optional<size_t> longest;
    for (size_t i = 0; i < list.size(); ++i) {
      const bool ends_here = std::string_view(text).substr(0, end).ends_with(list[i]);
      if (ends_here && (!longest || list[i].size() > list[*longest].size())) longest = i;
    }
    if (longest) return {text.substr(0, end - list[*longest].size()), longest};
  }
  return {text, std::nullopt};
}

TEST(StopStrings, OutputEndsWhereAStopBegins) {
  EXPECT_EQ(run(stops({"END"}), {"one END two"}), (Outcome{"one ", 0}));
  EXPECT_EQ(run(stops({"x", "END"}), {"one EN", "D two"}), (Outcome{"one ", 1}));
  EXPECT_EQ(run(stops({"END"}), {"END"}), (Outcome{"", 0}));
}

TEST(StopStrings, WithoutAStopEverythingComesOut) {
  EXPECT_EQ(run(stops({}), {"one ", "two"}), (Outcome{"one two", std::nullopt}));
  EXPECT_EQ(run(stops({"END"}), {"the EN"}), (Outcome{"the EN", std::nullopt}));
}

TEST(StopStrings, NothingThatMayBeginAStopIsShownEarly) {
  const StopStrings set = stops({"\n\nUser:"});
  StopMatcher matcher(set);
  EXPECT_EQ(matcher.push("hi\n"), "hi");
  EXPECT_EQ(matcher.push("\n"), "");
  EXPECT_EQ(matcher.push("\n"), "\n");  // the first of three is no beginning any more
  EXPECT_EQ(matcher.push("Use"), "");
  EXPECT_EQ(matcher.push("d"), "\n\nUsed");
  EXPECT_EQ(matcher.push("\n\nUser: what"), "");
  EXPECT_EQ(matcher.stopped(), 0u);
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopStrings, WhatIsCertainIsShownAtOnce) {
  const StopStrings set = stops({"aab"});
  StopMatcher matcher(set);
  EXPECT_EQ(matcher.push("xa"), "x");
  EXPECT_EQ(matcher.push("a"), "");
  EXPECT_EQ(matcher.push("a"), "a");
  EXPECT_EQ(matcher.push("c"), "aac");
}

TEST(StopStrings, OfSeveralTheOneThatIsCompleteFirstWins) {
  EXPECT_EQ(run(stops({"abcd", "bc"}), {"xabcd"}), (Outcome{"xa", 1}));
  EXPECT_EQ(run(stops({"bc", "abc"}), {"xabc"}), (Outcome{"x", 1}));  // both at once: the longest
  EXPECT_EQ(run(stops({"abcx", "bcd"}), {"abcd"}), (Outcome{"a", 1}));
  EXPECT_EQ(run(stops({"same", "same"}), {"same"}), (Outcome{"", 0}));
}

TEST(StopStrings, StopsMayShareBytesOfCodePoints) {
  // é and è differ in their second byte only.
  EXPECT_EQ(run(stops({"é"}), {"\xC3", "\xA8!\xC3", "\xA9"}), (Outcome{"è!", 0}));
  const StopStrings set = stops({"é"});
  StopMatcher matcher(set);
  EXPECT_EQ(matcher.push("aè"), "aè");  // whole code points in, whole code points out
}

TEST(StopStrings, SlowAndFastAgreeHoweverTheTextIsCut) {
  Random random(test_seed());
  SCOPED_TRACE(test_seed());
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> list;
    for (size_t i = random.below(4); i > 0; --i) {
      std::string stop;
      do stop += "ab"[random.below(2)];
      while (random.below(4) > 0);
      list.push_back(stop);
    }
    std::string text;
    for (size_t i = random.below(30); i > 0; --i)
      text += "abc"[random.below(8) == 0 ? 2 : random.below(2)];
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t size = 1 + random.below(4);
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    EXPECT_EQ(run(stops(list), pieces), slow(list, text)) << text << testing::PrintToString(list);
  }
}

TEST(StopStrings, HostileTextTakesLinearTime) {
  // Every byte falls back through all of the stop, once.
  const StopStrings set = stops({std::string(limits::kStopBytes - 1, 'a') + "b"});
  StopMatcher matcher(set);
  const std::string text = std::string(limits::kStopBytes, 'a') + "c";
  size_t shown = 0;
  for (int i = 0; i < 500; ++i) shown += matcher.push(text).size();
  EXPECT_EQ(shown, 500 * text.size());
}

TEST(StopStrings, BadListsAreRefusedWithTheFieldsName) {
  const auto message = [](const std::vector<std::string>& list) {
    return StopStrings::create(list).error().what;
  };
  EXPECT_THAT(message({"a", ""}), HasSubstr("stop[1]: is empty"));
  EXPECT_THAT(message({"\xC3"}), HasSubstr("stop[0]: byte 0 is not UTF-8"));
  EXPECT_THAT(message({std::string(limits::kStopBytes + 1, 'a')}),
              HasSubstr("stop[0]: 4097 bytes"));
  EXPECT_THAT(message(std::vector<std::string>(limits::kStops + 1, "a")), HasSubstr("stop: 65"));
}

}  // namespace
}  // namespace deltafin::text
