#include "cli/generation_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace deltafin::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(GenerationDefaults, ReadsWhatWeUse) {
  const Result<GenerationDefaults> defaults = parse_generation_defaults(
      R"({"bos_token_id": 1, "eos_token_id": 7, "do_sample": true, "temperature": 0.6, "top_p": 0.95,
          "top_k": 20, "min_p": 0.1, "repetition_penalty": 1.05, "transformers_version": "4"})");
  ASSERT_TRUE(defaults);
  EXPECT_THAT(defaults->eos_ids, ElementsAre(7));
  EXPECT_EQ(defaults->temperature, 0.6f);
  EXPECT_EQ(defaults->top_p, 0.95f);
  EXPECT_EQ(defaults->top_k, 20u);
  EXPECT_EQ(defaults->min_p, 0.1f);
  EXPECT_EQ(defaults->repetition_penalty, 1.05f);
}

TEST(GenerationDefaults, MayBeEmpty) {
  const Result<GenerationDefaults> defaults =
      parse_generation_defaults(R"({"temperature": null, "eos_token_id": null})");
  ASSERT_TRUE(defaults);
  EXPECT_THAT(defaults->eos_ids, IsEmpty());
  EXPECT_EQ(defaults->temperature, std::nullopt);
  EXPECT_EQ(defaults->top_k, std::nullopt);
}

TEST(GenerationDefaults, HasOneEosIdOrSeveral) {
  EXPECT_THAT(parse_generation_defaults(R"({"eos_token_id": [3, 5]})")->eos_ids, ElementsAre(3, 5));
}

TEST(GenerationDefaults, NamesTheFieldThatIsWrong) {
  for (const char* json :
       {R"({"temperature": "hot"})", R"({"temperature": -1})", R"({"temperature": true})"}) {
    const Result<GenerationDefaults> defaults = parse_generation_defaults(json);
    ASSERT_FALSE(defaults) << json;
    EXPECT_EQ(defaults.error().code, ErrorCode::BadModel);
    EXPECT_THAT(defaults.error().what, HasSubstr("temperature: found"));
  }
  for (const char* json : {R"({"eos_token_id": "x"})", R"({"eos_token_id": -1})",
                           R"({"eos_token_id": [1, "x"]})", R"({"eos_token_id": 99999999999})"})
    EXPECT_THAT(parse_generation_defaults(json).error().what, HasSubstr("eos_token_id")) << json;
  EXPECT_FALSE(parse_generation_defaults(R"({"top_p": 0})"));
  EXPECT_FALSE(parse_generation_defaults(R"({"top_k": 2.5})"));
  EXPECT_FALSE(parse_generation_defaults("[]"));
  EXPECT_FALSE(parse_generation_defaults("{"));
}

}  // namespace
}  // namespace deltafin::cli
