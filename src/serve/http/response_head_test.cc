#include "serve/http/response_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::serve {
namespace {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(ResponseHead, OfAWholeBodySaysItsLength) {
  const std::string head = response_head({}, 200, "application/json", 12, {{"X-Own", "value"}});
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nContent-Type: application/json\r\nContent-Length: 12\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nConnection: keep-alive\r\n"));
  EXPECT_THAT(head, EndsWith("\r\nX-Own: value\r\n\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("chunked")));
  EXPECT_THAT(head,
              ContainsRegex("\r\nDate: [MTWFS][a-z][a-z], [0-3][0-9] [JFMASOND][a-z][a-z] 20[0-9]+ "
                            "[0-9:]+ GMT\r\n"));
}

TEST(ResponseHead, OfAStreamKeepsProxiesFromWaiting) {
  const std::string head = response_head({}, 200, "text/event-stream", std::nullopt, {});
  EXPECT_THAT(head, HasSubstr("\r\nTransfer-Encoding: chunked\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"));
  const std::string old =
      response_head({.http_1_1 = false, .keep_alive = false}, 200, "text/plain", std::nullopt, {});
  EXPECT_THAT(old, Not(HasSubstr("chunked")));
  EXPECT_THAT(old, HasSubstr("\r\nConnection: close\r\n"));
}

TEST(ResponseHead, OfAStatusWithoutBodyHasNoLength) {
  for (const unsigned status : {204u, 304u}) {
    const std::string head = response_head({}, status, "text/plain", 0, {});
    EXPECT_THAT(head, Not(HasSubstr("Content-Length"))) << status;
    EXPECT_THAT(head, Not(HasSubstr("Content-Type:"))) << status;
  }
}

TEST(ResponseHead, HasTheHeadersOfTheForm) {
  EXPECT_THAT(response_head({.headers = {{"Vary", "Origin"}}}, 404, "text/plain", 0, {}),
              HasSubstr("\r\nVary: Origin\r\n"));
}

TEST(ResponseHead, CannotBeEndedByAValue) {
  EXPECT_THAT(response_head({}, 200, "text/plain", 0, {{"X", std::string("a\r\n\r\nb\0c", 8)}}),
              EndsWith("\r\nX: a    b c\r\n\r\n"));
}

TEST(AppendChunk, WritesTheSizeInHexadecimal) {
  std::string to = "x";
  append_chunk(std::string(26, 'a'), to);
  EXPECT_EQ(to, "x1a\r\n" + std::string(26, 'a') + "\r\n");
}

}  // namespace
}  // namespace deltafin::serve
