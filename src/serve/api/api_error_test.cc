#include "serve/api/api_error.h"

#include <gtest/gtest.h>

namespace deltafin::serve {
namespace {

std::string param_of(const char* message) {
  return to_api_error({ErrorCode::Usage, message}).param;
}

TEST(ApiError, IsOpenAIsErrorObject) {
  EXPECT_EQ(to_json({.status = 400, .message = "n: \xff", .type = "t", .param = "n", .code = "c"}),
            "{\"error\":{\"message\":\"n: \xef\xbf\xbd\",\"type\":\"t\",\"param\":\"n\","
            "\"code\":\"c\"}}");
}

TEST(ApiError, HasAStatusForEachKindOfError) {
  EXPECT_EQ(to_api_error({ErrorCode::Usage, "x"}).status, 400);
  EXPECT_EQ(to_api_error({ErrorCode::OverBudget, "x"}).status, 400);
  EXPECT_EQ(to_api_error({ErrorCode::Cancelled, "x"}).status, 499);
  for (const ErrorCode code : {ErrorCode::BadModel, ErrorCode::Io, ErrorCode::Mismatch})
    EXPECT_EQ(to_api_error({code, "x"}).status, 500);
}

TEST(ApiError, IsNoLongerThanAPersonReads) {
  std::string role;
  for (int i = 0; i < 1000; ++i) role += "\u20ac";
  const std::string message = to_api_error({ErrorCode::Usage, "messages[0].role: " + role}).message;
  EXPECT_LT(message.size(), 1010);
  EXPECT_TRUE(message.ends_with("\u20ac...")) << message;
}

TEST(ApiError, NamesTheFieldThatAMessageBeginsWith) {
  EXPECT_EQ(param_of("messages[3].tool_calls[0].function.arguments: expected an object"),
            "messages[3].tool_calls[0].function.arguments");
  EXPECT_EQ(param_of("top_p is 2; expected at most 1"), "top_p");
  EXPECT_EQ(param_of("logit_bias names token 7"), "logit_bias");
  EXPECT_EQ(param_of("the prompt is too long"), "");
  EXPECT_EQ(param_of("config.json: bad"), "");
  EXPECT_EQ(param_of(""), "");
}

}  // namespace
}  // namespace deltafin::serve
