#include "serve/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"

namespace deltafin::serve {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// What is in each <name>...</name> of the page.
std::vector<std::string_view> elements(std::string_view name) {
  const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  std::vector<std::string_view> found;
  for (size_t at = page_html().find(open); at != std::string_view::npos;
       at = page_html().find(open, at)) {
    at += open.size();
    found.push_back(page_html().substr(at, page_html().find(close, at) - at));
  }
  return found;
}

// As a policy spells it, by OpenSSL's base 64: ours is that of cmake/embed.cmake.
std::string hash_source(std::string_view text) {
  Sha256 sha;
  sha.add(std::as_bytes(std::span(text)));
  const Sha256Digest digest = sha.digest();
  std::string base64(44, '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(base64.data()),
                  reinterpret_cast<const unsigned char*>(digest.data()), int(digest.size()));
  return "'sha256-" + base64 + "'";
}

// The sources of one directive: "script-src 'sha256-...' ...".
std::string directive(std::string_view name) {
  const std::string policy = "; " + std::string(page_policy()) + ";";
  const size_t at = policy.find("; " + std::string(name) + " ");
  if (at == std::string::npos) return "";
  return policy.substr(at + 2, policy.find(';', at + 2) - at - 2);
}

TEST(Page, IsOneWholeDocument) {
  EXPECT_THAT(std::string(page_html()), StartsWith("<!doctype html>\n"));
  EXPECT_THAT(std::string(page_html()), EndsWith("</html>\n"));
  EXPECT_THAT(elements("style"), SizeIs(1));
  EXPECT_THAT(elements("script"), SizeIs(9));
  for (const std::string_view part : elements("script"))
    EXPECT_THAT(std::string(part), StartsWith("'use strict';\n"));
}

TEST(Page, NamesNothingThatWouldHaveToBeFetched) {
  for (const char* reference : {"http://", "https://", "src=", "rel=\"stylesheet\"", "@import",
                                "url(", "import(", "//cdn", "srcset"})
    EXPECT_THAT(std::string(page_html()), Not(HasSubstr(reference)));
}

TEST(Page, NeverMakesMarkupOrCodeOutOfText) {
  for (const char* way : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                          "new Function", "DOMParser", "srcdoc", " onclick=", "javascript:"})
    EXPECT_THAT(std::string(page_html()), Not(HasSubstr(way)));
}

TEST(Page, PolicyNamesEveryScriptAndStyleByItsHash) {
  std::string scripts = "script-src", styles = "style-src";
  for (const std::string_view script : elements("script")) scripts += " " + hash_source(script);
  for (const std::string_view style : elements("style")) styles += " " + hash_source(style);
  EXPECT_EQ(directive("script-src"), scripts);
  EXPECT_EQ(directive("style-src"), styles);
}

TEST(Page, PolicyAllowsNothingElse) {
  EXPECT_EQ(directive("default-src"), "default-src 'none'");
  EXPECT_EQ(directive("connect-src"), "connect-src 'self'");
  EXPECT_EQ(directive("base-uri"), "base-uri 'none'");
  EXPECT_EQ(directive("form-action"), "form-action 'none'");
  EXPECT_EQ(directive("frame-ancestors"), "frame-ancestors 'none'");
  EXPECT_EQ(directive("require-trusted-types-for"), "require-trusted-types-for 'script'");
  EXPECT_THAT(std::string(page_policy()), Not(HasSubstr("unsafe")));
  // A header is one line.
  EXPECT_THAT(std::string(page_policy()), Not(HasSubstr("\n")));
}

TEST(Page, StaysSmall) { EXPECT_LT(page_html().size(), 80'000u); }

}  // namespace
}  // namespace deltafin::serve
