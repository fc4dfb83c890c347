#include "cli/standard_output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace deltafin::cli {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  void close_reader() {
    ::close(ends[0]);
    ends[0] = -1;
  }
  std::string read_some() const {
    char buffer[256];
    const ssize_t got = ::read(ends[0], buffer, sizeof buffer);
    return std::string(buffer, size_t(got));
  }
};

TEST(StandardOutput, EndsATextWithExactlyOneLineBreak) {
  for (const char* text : {"word", "word\n"}) {
    const Pipe pipe;
    StandardOutput output(pipe.ends[1]);
    output.write(text);
    output.finish_line();
    output.finish_line();
    EXPECT_EQ(pipe.read_some(), "word\n");
  }
}

TEST(StandardOutput, AddsNothingToNoText) {
  const Pipe pipe;
  StandardOutput output(pipe.ends[1]);
  output.write("");
  output.finish_line();
  output.write("x");
  EXPECT_EQ(pipe.read_some(), "x");
}

TEST(StandardOutput, TakesAReaderThatLeftForNoError) {
  ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.close_reader();
  StandardOutput output(pipe.ends[1]);
  output.write("unheard");
  EXPECT_FALSE(output.is_open());
  EXPECT_TRUE(output.reader_is_gone());
  EXPECT_TRUE(output.status());
}

TEST(StandardOutput, ReportsAFullDisk) {
  const int full = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  StandardOutput output(full);
  output.write("too much");
  output.write("ignored");
  EXPECT_FALSE(output.is_open());
  EXPECT_FALSE(output.reader_is_gone());
  ASSERT_FALSE(output.status());
  EXPECT_EQ(output.status().error().code, ErrorCode::Io);
  EXPECT_THAT(output.status().error().what, testing::HasSubstr("No space left"));
  ::close(full);
}

}  // namespace
}  // namespace deltafin::cli
