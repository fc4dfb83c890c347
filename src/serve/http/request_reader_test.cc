#include "serve/http/request_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/philox.h"

namespace deltafin::serve {
namespace {

using ::testing::HasSubstr;
using Step = RequestReader::Step;

struct Outcome {
  Step step = Step::NeedMore;
  unsigned status = 0;  // of the error
  std::string message = {};
  HttpRequest request = {};
  std::string left = {};
};

// Gives the bytes in pieces of `piece` bytes, as a connection would.
Outcome read(const std::string& bytes, const HttpLimits& limits = {}, size_t piece = SIZE_MAX) {
  RequestReader reader(limits);
  Outcome outcome;
  size_t given = 0;
  while (outcome.step == Step::NeedMore || outcome.step == Step::Head) {
    if (outcome.step == Step::NeedMore) {
      if (given == bytes.size()) return outcome;
      const size_t count = std::min(piece, bytes.size() - given);
      outcome.left += bytes.substr(given, count);
      given += count;
    }
    size_t used = 0;
    outcome.step = reader.read(outcome.left, used);
    EXPECT_LE(used, outcome.left.size());
    outcome.left.erase(0, used);
  }
  outcome.left += bytes.substr(given);
  if (outcome.step == Step::Whole) outcome.request = reader.take();
  if (outcome.step == Step::Wrong) {
    outcome.status = reader.error().status;
    outcome.message = reader.error().message;
  }
  return outcome;
}

unsigned status(const std::string& bytes, const HttpLimits& limits = {}) {
  const Outcome outcome = read(bytes, limits);
  return outcome.step == Step::Whole ? 200 : outcome.status;
}

const std::string kHost = "Host: h\r\n";
const std::string kPost = "POST /x HTTP/1.1\r\nHost: h\r\n";
const std::string kChunked = kPost + "Transfer-Encoding: chunked\r\n\r\n";

TEST(RequestReader, ReadsHeadAndBody) {
  const Outcome outcome = read(
      "POST /v1/x%20y?q=1 HTTP/1.1\r\nHost: h\r\nX-Odd:  a b \r\nContent-Length: "
      "5\r\n\r\nhelloGET");
  ASSERT_EQ(outcome.step, Step::Whole);
  EXPECT_EQ(outcome.request.method, "POST");
  EXPECT_EQ(outcome.request.path, "/v1/x y");
  EXPECT_EQ(outcome.request.query, "q=1");
  EXPECT_EQ(outcome.request.body, "hello");
  ASSERT_TRUE(outcome.request.header("x-odd"));
  EXPECT_EQ(*outcome.request.header("x-odd"), "a b");
  EXPECT_EQ(outcome.request.header("x-other"), nullptr);
  EXPECT_EQ(outcome.left, "GET");
}

TEST(RequestReader, ReadsTheSameHoweverTheBytesAreCut) {
  const std::string requests[] = {
      kPost + "Content-Length: 5\r\n\r\nhello",
      kChunked + "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
      kChunked + "5\r\nhello\r\n0\r\nX-Trailer: ignored\r\n\r\n",
      kChunked + "5\r\nhello\r\n000\r\n\r\n",
  };
  for (const std::string& bytes : requests)
    for (size_t piece = 1; piece <= bytes.size() + 1; ++piece) {
      const Outcome outcome = read(bytes + "\r\n", {}, piece);
      ASSERT_EQ(outcome.step, Step::Whole) << bytes << piece << outcome.message;
      EXPECT_EQ(outcome.request.body, "hello");
      EXPECT_EQ(outcome.request.header("x-trailer"), nullptr);
      EXPECT_EQ(outcome.left, "\r\n");
    }
}

TEST(RequestReader, ReadsAnEmptyChunkedBodyInAnyPieces) {
  for (size_t piece = 1; piece < 100; ++piece) {
    const Outcome outcome = read(kChunked + "0\r\n\r\n", {}, piece);
    ASSERT_EQ(outcome.step, Step::Whole) << piece;
    EXPECT_EQ(outcome.request.body, "");
  }
}

TEST(RequestReader, NeverTakesACutRequestForAWholeOne) {
  for (const std::string& bytes :
       {kPost + "Content-Length: 5\r\n\r\nhello", kChunked + "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"})
    for (size_t size = 0; size < bytes.size(); ++size)
      EXPECT_EQ(read(bytes.substr(0, size)).step, Step::NeedMore) << size;
}

TEST(RequestReader, RefusesWhatIsNoHttp) {
  for (const std::string& bytes : std::vector<std::string>{
           std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 15),
           std::string("hello\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("GET /x\r\n\r\n"),
           "GET  /x HTTP/1.1\r\n" + kHost + "\r\n", "G\x01T /x HTTP/1.1\r\n" + kHost + "\r\n",
           "GET /x HTTP/1.1\r\nHost h\r\n\r\n",
           "GET /x HTTP/1.1\r\n" + kHost + "Bad Name: x\r\n\r\n",
           "GET /x HTTP/1.1\r\n" + kHost + "A: b\rc\r\n\r\n",
           std::string("GET /x HTTP/1.1\r\nHost: h\0i\r\n\r\n", 31),
           std::string("GET /\0x HTTP/1.1\r\nHost: h\r\n\r\n", 30)})
    EXPECT_EQ(status(bytes), 400u) << bytes;
  EXPECT_EQ(status("GET /x HTTP/1.1\n" + kHost + "\n"), 505u);
  EXPECT_EQ(status("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505u);
  EXPECT_EQ(status("GET /x HTTP/3.0\r\n" + kHost + "\r\n"), 505u);
}

TEST(RequestReader, RefusesBadTargets) {
  EXPECT_EQ(status("GET /%zz HTTP/1.1\r\n" + kHost + "\r\n"), 400u);
  EXPECT_EQ(status("GET /%00 HTTP/1.1\r\n" + kHost + "\r\n"), 400u);
  EXPECT_EQ(status("CONNECT h:80 HTTP/1.1\r\n" + kHost + "\r\n"), 400u);
  EXPECT_EQ(status("GET x HTTP/1.1\r\n" + kHost + "\r\n"), 400u);
}

TEST(RequestReader, PassesMethodsOn) {
  for (const std::string method : {"GET", "HEAD", "BREW", "x-y", "OPTIONS"})
    EXPECT_EQ(read(method + " /x HTTP/1.1\r\n" + kHost + "\r\n").request.method, method);
  EXPECT_EQ(read("OPTIONS * HTTP/1.1\r\n" + kHost + "\r\n").request.path, "*");
}

TEST(RequestReader, WantsOneHost) {
  EXPECT_EQ(status("GET /x HTTP/1.1\r\n\r\n"), 400u);
  EXPECT_EQ(status("GET /x HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"), 400u);
  EXPECT_EQ(status("GET /x HTTP/1.0\r\n\r\n"), 200u);
  const Outcome absolute = read("GET http://real:1/x HTTP/1.1\r\nHost: other\r\n\r\n");
  ASSERT_EQ(absolute.step, Step::Whole);
  EXPECT_EQ(*absolute.request.header("host"), "real:1");
  EXPECT_EQ(absolute.request.headers.size(), 1u);
  EXPECT_EQ(status("GET /x HTTP/1.1\r\n" + kHost + "Origin: a\r\nOrigin: b\r\n\r\n"), 400u);
  EXPECT_EQ(status("GET /x HTTP/1.1\r\n" + kHost + "Accept: a\r\nAccept: b\r\n\r\n"), 200u);
}

TEST(RequestReader, KnowsOneLengthOfABody) {
  EXPECT_EQ(status(kPost + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), 400u);
  EXPECT_EQ(status(kPost + "Content-Length: -1\r\n\r\n"), 400u);
  EXPECT_EQ(status(kPost + "Content-Length: 0x1\r\n\r\na"), 400u);
  EXPECT_EQ(status(kPost + "Content-Length: 99999999999999999999\r\n\r\n"), 400u);
  EXPECT_EQ(status(kPost + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            400u);
  EXPECT_EQ(status(kPost + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n"),
            400u);
}

TEST(RequestReader, KnowsNoCodingButChunked) {
  EXPECT_EQ(status(kPost + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 501u);
  EXPECT_EQ(status(kPost + "Transfer-Encoding: identity\r\n\r\n"), 501u);
  EXPECT_EQ(status(kPost + "Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"), 200u);
  EXPECT_EQ(status(kPost + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\na"), 415u);
}

TEST(RequestReader, RefusesBrokenChunks) {
  for (const char* body :
       {"x\r\na\r\n0\r\n\r\n", "1\r\nab\r\n0\r\n\r\n", "-1\r\na\r\n0\r\n\r\n",
        "fffffffffffffffff\r\n", "1;ext=1\r\na\r\n0\r\n\r\n", "0;x\r\n\r\n", "1\na\n0\n\n\n\n"})
    EXPECT_NE(status(kChunked + body), 200u) << body;
}

TEST(RequestReader, LimitsTheHeaders) {
  const HttpLimits limits = {.header_bytes = 256, .headers = 8};
  const std::string start = "GET /x HTTP/1.1\r\n" + kHost;
  EXPECT_EQ(status(start + "A: " + std::string(200, 'a') + "\r\n\r\n", limits), 200u);
  EXPECT_EQ(status(start + "A: " + std::string(300, 'a') + "\r\n\r\n", limits), 431u);
  EXPECT_EQ(status(start + "A: " + std::string(3000, 'a'), limits), 431u);
  EXPECT_EQ(status("GET /" + std::string(3000, 'a'), limits), 431u);
  std::string many;
  for (int i = 0; i < 7; ++i) many += "A: b\r\n";
  EXPECT_EQ(status(start + many + "\r\n", limits), 200u);
  EXPECT_EQ(status(start + many + "A: b\r\n\r\n", limits), 431u);
}

TEST(RequestReader, LimitsTheBody) {
  const HttpLimits limits = {.header_bytes = 256, .body_bytes = 8};
  EXPECT_EQ(status(kPost + "Content-Length: 8\r\n\r\n12345678", limits), 200u);
  EXPECT_EQ(status(kPost + "Content-Length: 9\r\n\r\n", limits), 413u);
  EXPECT_EQ(status(kChunked + "4\r\n1234\r\n4\r\n5678\r\n0\r\n\r\n", limits), 200u);
  EXPECT_EQ(status(kChunked + "4\r\n1234\r\n5\r\n56789\r\n0\r\n\r\n", limits), 413u);
  EXPECT_EQ(status(kChunked + "ffffffff\r\n", limits), 413u);
}

TEST(RequestReader, LimitsTheLinesOfAChunkedBody) {
  const HttpLimits limits = {.header_bytes = 256};
  EXPECT_EQ(status(kChunked + std::string(300, '0'), limits), 431u);
  EXPECT_EQ(status(kChunked + "0\r\nX: " + std::string(300, 'x'), limits), 431u);
}

TEST(RequestReader, KnowsWhetherTheConnectionStays) {
  const auto keeps = [](const std::string& line_and_headers) {
    const HttpLimits limits;
    RequestReader reader(limits);
    size_t used = 0;
    EXPECT_EQ(reader.read(line_and_headers + "\r\n", used), Step::Head);
    return reader.keep_alive();
  };
  EXPECT_TRUE(keeps("GET /x HTTP/1.1\r\nHost: h\r\n"));
  EXPECT_FALSE(keeps("GET /x HTTP/1.1\r\nHost: h\r\nConnection: Close\r\n"));
  EXPECT_FALSE(keeps("GET /x HTTP/1.0\r\n"));
  EXPECT_FALSE(keeps("GET /x HTTP/1.0\r\nConnection: keep-alive\r\n"));
}

TEST(RequestReader, KnowsWhoWaitsForContinue) {
  EXPECT_EQ(status(kPost + "Expect: 200-ok\r\nContent-Length: 1\r\n\r\na"), 417u);
  const HttpLimits limits;
  RequestReader reader(limits);
  size_t used = 0;
  EXPECT_EQ(reader.read(kPost + "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\n", used),
            Step::Head);
  EXPECT_TRUE(reader.expects_continue());
}

// Bytes changed, dropped, doubled and moved: every step must end, use no more than there is, and
// make no difference between one piece and many.
TEST(RequestReader, SurvivesMutations) {
  const std::string seeds[] = {
      kPost + "Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
      kChunked + "3\r\nhel\r\n2\r\nlo\r\n0\r\nX-Trailer: t\r\n\r\n",
      "GET http://h/%41?b HTTP/1.0\r\nConnection: keep-alive, close\r\nA: b\r\n c\r\n\r\n",
  };
  const HttpLimits limits = {.header_bytes = 512, .headers = 8, .body_bytes = 64};
  Random random(7);
  for (int round = 0; round < 6000; ++round) {
    std::string bytes = seeds[random.below(std::size(seeds))];
    for (uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
      const size_t at = random.below(bytes.size());
      switch (random.below(4)) {
        case 0:
          bytes[at] = static_cast<char>(random.below(256));
          break;
        case 1:
          bytes.erase(at, 1 + random.below(3));
          break;
        case 2:
          bytes.insert(at, bytes.substr(random.below(bytes.size()), random.below(30)));
          break;
        default:
          bytes[at] = "\r\n :;0x%\0"[random.below(9)];
      }
      if (bytes.empty()) bytes = "x";
    }
    const Outcome whole = read(bytes, limits);
    const Outcome pieces = read(bytes, limits, 1 + random.below(9));
    // Where the end is missing, an error may be noticed sooner in one piece.
    ASSERT_EQ(whole.step == Step::Whole, pieces.step == Step::Whole) << bytes;
    ASSERT_EQ(whole.request.body, pieces.request.body) << bytes;
    ASSERT_EQ(whole.left, whole.step == Step::Whole ? pieces.left : whole.left) << bytes;
  }
}

}  // namespace
}  // namespace deltafin::serve
