#include "cli/message_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace deltafin::cli {
namespace {

using Kind = MessageSource::Kind;

class LineSourceTest : public testing::Test {
 protected:
  ~LineSourceTest() override {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  void write(std::string_view text) {
    EXPECT_EQ(::write(ends_[1], text.data(), text.size()), ssize_t(text.size()));
  }
  void end() {
    ::close(ends_[1]);
    ends_[1] = -1;
  }
  std::string message(MessageSource& source) {
    const MessageSource::Reading reading = source.next().value();
    EXPECT_EQ(reading.kind, Kind::Message);
    return reading.text;
  }

  static std::array<int, 2> open_pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    return ends;
  }

  std::array<int, 2> ends_ = open_pipe();
  CancelToken cancel_;
  std::unique_ptr<MessageSource> source_ = open_line_source(ends_[0], cancel_);
};

TEST_F(LineSourceTest, GivesAMessageALineAndThenEnds) {
  write("one\ntwo\\\nthree\n\nfour");
  end();
  EXPECT_EQ(message(*source_), "one");
  EXPECT_EQ(message(*source_), "two\nthree");
  EXPECT_EQ(message(*source_), "");
  EXPECT_EQ(message(*source_), "four");
  EXPECT_EQ(source_->next().value().kind, Kind::End);
  EXPECT_EQ(source_->next().value().kind, Kind::End);
}

TEST_F(LineSourceTest, SendsWhatWasBegunWhenTheInputEnds) {
  write("one\\\n");
  end();
  EXPECT_EQ(message(*source_), "one\n");
  EXPECT_EQ(source_->next().value().kind, Kind::End);
}

TEST_F(LineSourceTest, WaitsNoLongerWhenInterrupted) {
  write("one\n");
  EXPECT_EQ(message(*source_), "one");
  cancel_.cancel();
  EXPECT_EQ(source_->next().value().kind, Kind::Interrupted);
}

TEST_F(LineSourceTest, AFailedReadIsAnError) {
  const std::unique_ptr<MessageSource> source = open_line_source(-1, cancel_);
  EXPECT_EQ(source->next().error().code, ErrorCode::Io);
}

}  // namespace
}  // namespace deltafin::cli
