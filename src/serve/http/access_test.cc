#include "serve/http/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::serve {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

HttpRequest request(std::string method, std::string path, HeaderList headers) {
  return {.method = std::move(method),
          .path = std::move(path),
          .query = "",
          .headers = std::move(headers),
          .body = ""};
}

unsigned status(const AccessRules& rules, const HttpRequest& asked) {
  const Access access = check_access(rules, asked);
  return access.refusal ? access.refusal->status : 200;
}

unsigned status_of_host(const AccessRules& rules, const std::string& host) {
  return status(rules, request("GET", "/v1/models", {{"host", host}}));
}

TEST(AccessHost, IsTheAddressOrAnyNameOfThisMachine) {
  const AccessRules rules = {.address = "127.0.0.2"};
  for (const char* host : {"localhost", "LocalHost:8000", "127.0.0.1:1", "[::1]:8000", "[::1]",
                           "127.0.0.2", "127.0.0.2:99"})
    EXPECT_EQ(status_of_host(rules, host), 200u) << host;
}

TEST(AccessHost, ThatDnsCouldPointHereIsRefused) {
  const AccessRules rules = {.address = "127.0.0.1"};
  for (const char* host : {"evil.example", "evil.example:8000", "localhost.evil.example", "",
                           "127.0.0.1.evil.example", "192.168.1.1", "[::2]", "[", "localhost@evil"})
    EXPECT_EQ(status_of_host(rules, host), 403u) << host;
  EXPECT_THAT(check_access(rules, request("GET", "/", {{"host", "evil.example"}})).refusal->message,
              HasSubstr("'evil.example'"));
}

TEST(AccessHost, CanBeAllowed) {
  const AccessRules rules = {.allowed_hosts = {"Box.lan", "other.lan:81"}, .address = "127.0.0.1"};
  EXPECT_EQ(status_of_host(rules, "box.LAN:8000"), 200u);
  EXPECT_EQ(status_of_host(rules, "other.lan:81"), 200u);
  EXPECT_EQ(status_of_host(rules, "other.lan:82"), 403u);
}

TEST(AccessHost, OfAServerForOtherMachinesIsAnyAddressButNoName) {
  const AccessRules rules = {.address = "0.0.0.0", .beyond_loopback = true};
  EXPECT_EQ(status_of_host(rules, "192.168.1.1:8000"), 200u);
  EXPECT_EQ(status_of_host(rules, "[fd00::2]:8000"), 200u);
  EXPECT_EQ(status_of_host(rules, "evil.example"), 403u);
}

TEST(AccessHost, IsFreeWhereAKeyIsNeededAnyway) {
  const AccessRules rules = {.api_key = "k", .address = "0.0.0.0", .beyond_loopback = true};
  EXPECT_EQ(status_of_host(rules, "box.example"), 401u);
  const AccessRules local = {.api_key = "k", .address = "127.0.0.1"};
  EXPECT_EQ(status_of_host(local, "box.example"), 403u);
}

TEST(AccessHost, MayBeMissingAsInHttp10) {
  EXPECT_EQ(status({.address = "127.0.0.1"}, request("GET", "/v1/models", {})), 200u);
}

unsigned status_of_origin(const AccessRules& rules, const std::string& method,
                          const std::string& origin) {
  return status(rules,
                request(method, "/v1/models", {{"host", "localhost:8000"}, {"origin", origin}}));
}

TEST(AccessOrigin, IsOurOwnPage) {
  const AccessRules rules = {.address = "127.0.0.1"};
  EXPECT_EQ(status_of_origin(rules, "POST", "http://localhost:8000"), 200u);
  EXPECT_EQ(status_of_origin(rules, "POST", "https://localhost:8000"), 200u);
  EXPECT_TRUE(check_access(
                  rules, request("POST", "/x",
                                 {{"host", "localhost:8000"}, {"origin", "http://localhost:8000"}}))
                  .headers.empty());
}

TEST(AccessOrigin, OfAnotherPageIsRefusedForEveryMethod) {
  const AccessRules rules = {.address = "127.0.0.1"};
  for (const char* method : {"GET", "HEAD", "POST", "OPTIONS", "DELETE", "WEIRD"})
    for (const char* origin : {"http://evil.example", "http://localhost:8001", "null", "",
                               "http://localhost", "localhost:8000", "file://localhost:8000"})
      EXPECT_EQ(status_of_origin(rules, method, origin), 403u) << method << " " << origin;
  // Not even what needs no key.
  EXPECT_EQ(status(rules, request("GET", "/health",
                                  {{"host", "localhost"}, {"origin", "http://evil.example"}})),
            403u);
}

TEST(AccessOrigin, CanBeAllowed) {
  const AccessRules rules = {.allowed_origins = {"https://chat.example"}, .address = "127.0.0.1"};
  const Access access = check_access(
      rules,
      request("POST", "/v1/models", {{"host", "localhost"}, {"origin", "https://chat.example"}}));
  EXPECT_FALSE(access.refusal);
  EXPECT_FALSE(access.preflight);
  EXPECT_THAT(access.headers,
              Contains(Pair("Access-Control-Allow-Origin", "https://chat.example")));
  EXPECT_THAT(access.headers, Contains(Pair("Vary", "Origin")));
  EXPECT_EQ(status_of_origin(rules, "GET", "http://chat.example"), 403u);
  EXPECT_EQ(status_of_origin(rules, "GET", "https://chat.example.evil.example"), 403u);
}

TEST(AccessOrigin, CanBeAny) {
  const AccessRules rules = {.allowed_origins = {"*"}, .address = "127.0.0.1"};
  EXPECT_EQ(status_of_origin(rules, "POST", "null"), 200u);
  EXPECT_EQ(status_of_origin(rules, "POST", "http://evil.example"), 200u);
}

TEST(AccessPreflight, OfAnAllowedPageNeedsNoKey) {
  const AccessRules rules = {
      .api_key = "k", .allowed_origins = {"https://chat.example"}, .address = "127.0.0.1"};
  HttpRequest asked = request("OPTIONS", "/v1/chat/completions",
                              {{"host", "localhost"},
                               {"origin", "https://chat.example"},
                               {"access-control-request-method", "POST"},
                               {"access-control-request-headers", "authorization,x-stainless-os"}});
  const Access access = check_access(rules, asked);
  EXPECT_FALSE(access.refusal);
  EXPECT_TRUE(access.preflight);
  EXPECT_THAT(access.headers,
              Contains(Pair("Access-Control-Allow-Headers", "authorization,x-stainless-os")));
  EXPECT_THAT(access.headers, Contains(Pair("Access-Control-Allow-Methods", HasSubstr("POST"))));

  asked.headers[1].second = "https://evil.example";
  const Access refused = check_access(rules, asked);
  EXPECT_EQ(refused.refusal->status, 403u);
  EXPECT_TRUE(refused.headers.empty());
}

const AccessRules kKeyed = {.api_key = "secret", .address = "127.0.0.1"};

unsigned status_of_key(const std::string& header, const std::string& value) {
  return status(kKeyed,
                request("POST", "/v1/completions", {{"host", "localhost"}, {header, value}}));
}

TEST(AccessKey, IsABearerTokenOrAnXApiKey) {
  EXPECT_EQ(status_of_key("authorization", "Bearer secret"), 200u);
  EXPECT_EQ(status_of_key("authorization", "bearer  secret"), 200u);
  EXPECT_EQ(status_of_key("x-api-key", "secret"), 200u);
}

TEST(AccessKey, MustBeTheWholeKey) {
  for (const char* value :
       {"Bearer secre", "Bearer secrets", "Bearer secretsecret", "Bearer ", "Bearer", "", "secret",
        "Basic secret", "Bearer Secret", "Bearer secre\t"})
    EXPECT_EQ(status_of_key("authorization", value), 401u) << value;
  EXPECT_EQ(status_of_key("x-api-key", "s"), 401u);
  EXPECT_EQ(status_of_key("x-api-key", ""), 401u);
  EXPECT_EQ(status(kKeyed, request("POST", "/v1/completions", {{"host", "localhost"}})), 401u);
}

TEST(AccessKey, IsAskedForInTheWayOfHttp) {
  const Access access = check_access(kKeyed, request("GET", "/v1/models", {{"host", "localhost"}}));
  EXPECT_THAT(access.headers, Contains(Pair("WWW-Authenticate", HasSubstr("Bearer"))));
  EXPECT_EQ(access.refusal->code, "invalid_api_key");
}

TEST(AccessKey, IsNotNeededToSeeThePageAndTheHealth) {
  for (const char* path : {"/", "/health"}) {
    EXPECT_EQ(status(kKeyed, request("GET", path, {{"host", "localhost"}})), 200u) << path;
    EXPECT_EQ(status(kKeyed, request("HEAD", path, {{"host", "localhost"}})), 200u) << path;
    EXPECT_EQ(status(kKeyed, request("POST", path, {{"host", "localhost"}})), 401u) << path;
  }
  for (const char* path : {"/metrics", "/status", "/health/", "//", "/v1/models"})
    EXPECT_EQ(status(kKeyed, request("GET", path, {{"host", "localhost"}})), 401u) << path;
}

TEST(SameKey, IsTrueForTheSameTextAlone) {
  EXPECT_TRUE(same_key("abc", "abc"));
  EXPECT_FALSE(same_key("abd", "abc"));
  EXPECT_FALSE(same_key("xbc", "abc"));
  EXPECT_FALSE(same_key("ab", "abc"));
  EXPECT_FALSE(same_key("abcabc", "abc"));
  EXPECT_FALSE(same_key("", "abc"));
  EXPECT_FALSE(same_key("abc", ""));
}

TEST(HostName, IsWithoutPortAndBrackets) {
  EXPECT_EQ(host_name("Example.com:80"), "example.com");
  EXPECT_EQ(host_name("[FE80::1]:80"), "fe80::1");
  EXPECT_EQ(host_name("[::1"), "::1");
  EXPECT_EQ(host_name("["), "");
  EXPECT_EQ(host_name(""), "");
}

}  // namespace
}  // namespace deltafin::serve
