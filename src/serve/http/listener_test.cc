#include "serve/http/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace deltafin::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ListenAt, TellsAddressPortAndReach) {
  const auto local = listen_at("localhost", 0, false);
  ASSERT_TRUE(local) << local.error().what;
  EXPECT_EQ(local->address, "127.0.0.1");
  EXPECT_GT(local->port, 0);
  EXPECT_FALSE(local->beyond_loopback);
  const auto six = listen_at("[::1]", 0, false);
  ASSERT_TRUE(six) << six.error().what;
  EXPECT_EQ(six->address, "::1");
  EXPECT_FALSE(six->beyond_loopback);
  const auto any = listen_at("0.0.0.0", 0, true);
  ASSERT_TRUE(any) << any.error().what;
  EXPECT_TRUE(any->beyond_loopback);
}

TEST(ListenAt, WantsToBeAllowedBeyondLoopback) {
  for (const char* host : {"0.0.0.0", "::", "192.0.2.1", "::ffff:192.0.2.1"}) {
    const auto listener = listen_at(host, 0, false);
    ASSERT_FALSE(listener) << host;
    EXPECT_EQ(listener.error().code, ErrorCode::Usage);
    EXPECT_THAT(listener.error().what, HasSubstr("--api-key-file"));
  }
  EXPECT_TRUE(listen_at("127.9.9.9", 0, false));
}

TEST(CannotListen, SaysWhatToDo) {
  const Error taken = cannot_listen("127.0.0.1", 8000, EADDRINUSE);
  EXPECT_EQ(taken.code, ErrorCode::Usage);
  EXPECT_THAT(taken.what, StartsWith("--port 8000: "));
  EXPECT_THAT(taken.what, HasSubstr("another port"));
  const Error privileged = cannot_listen("127.0.0.1", 80, EACCES);
  EXPECT_EQ(privileged.code, ErrorCode::Usage);
  EXPECT_THAT(privileged.what, StartsWith("--port 80: "));
  const Error other = cannot_listen("127.0.0.1", 80, ENOBUFS);
  EXPECT_EQ(other.code, ErrorCode::Io);
  EXPECT_THAT(other.what, HasSubstr("--port 80"));
}

}  // namespace
}  // namespace deltafin::serve
