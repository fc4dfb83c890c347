#include "serve/http/request_target.h"

#include <gtest/gtest.h>

namespace deltafin::serve {
namespace {

TEST(RequestTarget, SplitsPathAndQuery) {
  const auto target = parse_target("/v1/requests/a%2Fb?x=%20&y#z");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/v1/requests/a/b");
  EXPECT_EQ(target->query, "x=%20&y#z");
  EXPECT_FALSE(target->host);
}

TEST(RequestTarget, MayBeAbsoluteAsForAProxy) {
  const auto target = parse_target("http://localhost:8000/health?now");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/health");
  EXPECT_EQ(target->query, "now");
  EXPECT_EQ(target->host, "localhost:8000");
  EXPECT_EQ(parse_target("http://localhost")->path, "/");
  EXPECT_EQ(parse_target("http://localhost?q")->query, "q");
}

TEST(RequestTarget, MayBeTheWholeServer) { EXPECT_EQ(parse_target("*")->path, "*"); }

TEST(RequestTarget, IsNothingElse) {
  for (const char* target :
       {"", "x", "localhost:80", "http://", "http:///x", "ftp://localhost/x", "**", "?x", "#"})
    EXPECT_FALSE(parse_target(target)) << target;
}

TEST(RequestTarget, RefusesWrongPercentEncoding) {
  for (const char* target : {"/%", "/%4", "/%zz", "/%4z", "/a%", "/%%41", "/%+1"})
    EXPECT_FALSE(parse_target(target)) << target;
  EXPECT_FALSE(parse_target("/a%00b"));
  EXPECT_EQ(parse_target("/%41%7a%F0")->path, "/Az\xF0");
  EXPECT_EQ(parse_target("/%10")->path, "/\x10");
}

}  // namespace
}  // namespace deltafin::serve
