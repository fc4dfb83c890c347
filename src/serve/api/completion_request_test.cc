#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "serve/api/test_requests.h"

namespace deltafin::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

ApiResult<CompletionRequest> parse(const std::string& members,
                                   const ApiDefaults& defaults = test_defaults()) {
  return parse_completion_request("{" + members + "}", defaults);
}

// With a prompt, and these members.
ApiResult<CompletionRequest> with(const std::string& members,
                                  const ApiDefaults& defaults = test_defaults()) {
  return parse(R"("prompt": "x")" + (members.empty() ? "" : ", " + members), defaults);
}

std::string wrong(const std::string& members) { return problem(with(members)); }

std::vector<CompletionPrompt> prompts(const std::string& prompt) {
  return parse("\"prompt\": " + prompt).value().prompts;
}

TEST(CompletionRequest, OfAPromptAloneIsSixteenGreedyTokens) {
  const CompletionRequest request = with("").value();
  EXPECT_EQ(request.prompts, std::vector<CompletionPrompt>{"x"});
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_EQ(request.answers, 1);
  EXPECT_EQ(request.sampling.temperature, 0);
  EXPECT_FALSE(request.echo || request.stream || request.include_usage);
  EXPECT_FALSE(request.logprobs || request.timeout);
  EXPECT_THAT(request.stop, IsEmpty());
}

TEST(CompletionRequest, TakesTextsAndIds) {
  using Ids = std::vector<TokenId>;
  EXPECT_THAT(prompts(R"("one")"), ElementsAre(CompletionPrompt("one")));
  EXPECT_THAT(prompts(R"(["one", "two"])"),
              ElementsAre(CompletionPrompt("one"), CompletionPrompt("two")));
  EXPECT_THAT(prompts("[1, 2, 999]"), ElementsAre(CompletionPrompt(Ids{1, 2, 999})));
  EXPECT_THAT(prompts("[[1, 2], [3]]"),
              ElementsAre(CompletionPrompt(Ids{1, 2}), CompletionPrompt(Ids{3})));
}

TEST(CompletionRequest, NamesThePromptThatIsNone) {
  const auto wrong_prompt = [](const std::string& prompt) {
    return problem(parse("\"prompt\": " + prompt));
  };
  EXPECT_THAT(problem(parse("")), StartsWith("400 missing_required_parameter prompt | prompt: is "
                                             "missing; expected a string, an array of token ids"));
  EXPECT_THAT(wrong_prompt("null"), HasSubstr("prompt: is missing"));
  EXPECT_EQ(wrong_prompt(R"("")"),
            "400 invalid_value prompt | prompt: is empty; there must be something to go on from");
  EXPECT_THAT(wrong_prompt("[]"), HasSubstr("prompt: is empty"));
  EXPECT_THAT(wrong_prompt(R"(["a", ""])"), HasSubstr("prompt[1]: is empty"));
  EXPECT_THAT(wrong_prompt("[[1], []]"), HasSubstr("prompt[1]: is empty"));
  EXPECT_EQ(wrong_prompt("[1, 1000]"),
            "400 invalid_value prompt[1] | prompt[1]: expected a token id from 0 to 999, found "
            "1000");
  EXPECT_THAT(wrong_prompt("[[5], [-1]]"), HasSubstr("prompt[1][0]: expected a token id"));
  EXPECT_THAT(wrong_prompt("[1.0]"), HasSubstr("prompt[0]: expected a token id"));
  EXPECT_THAT(wrong_prompt(R"(["a", 1])"),
              HasSubstr("prompt[1]: expected a string, as the first one, found 1"));
  EXPECT_THAT(wrong_prompt(R"([[1], "a"])"),
              HasSubstr("prompt[1]: expected an array of token ids, as the first one"));
  EXPECT_THAT(wrong_prompt("[null]"), HasSubstr("prompt[0]: expected a string, or an array"));
  EXPECT_THAT(wrong_prompt("{}"), HasSubstr("found an object"));
}

TEST(CompletionRequest, HasABoundedNumberOfPrompts) {
  std::string many = "[";
  for (size_t i = 0; i < limits::kPromptsOfRequest; ++i) many += "\"x\",";
  EXPECT_EQ(prompts(many.substr(0, many.size() - 1) + "]").size(), limits::kPromptsOfRequest);
  EXPECT_THAT(problem(parse("\"prompt\": " + many + "\"x\"]")),
              HasSubstr("prompt: has 1025 prompts; expected at most 1024"));
}

TEST(CompletionRequest, ScoresAPromptWithoutGeneratingAnything) {
  const CompletionRequest request =
      with(R"("echo": true, "max_tokens": 0, "logprobs": 1, "temperature": 0)").value();
  EXPECT_TRUE(request.echo);
  EXPECT_EQ(request.max_tokens, 0);
  EXPECT_EQ(request.logprobs, 1);
  EXPECT_EQ(with(R"("logprobs": 0)").value().logprobs, 0);
  EXPECT_EQ(with(R"("logprobs": 20)").value().logprobs, 20);
  EXPECT_EQ(wrong(R"("logprobs": 21)"),
            "400 invalid_value logprobs | logprobs: expected an integer from 0 to 20, found 21");
  EXPECT_THAT(wrong(R"("logprobs": true)"), HasSubstr("found true"));
}

TEST(CompletionRequest, IsRefusedForAFieldThatNobodyKnows) {
  EXPECT_EQ(wrong(R"("temprature": 1)"),
            "400 unknown_parameter temprature | temprature: is no field that this server knows; "
            "did you mean temperature?");
  EXPECT_EQ(wrong(R"("zzzz": null)"),
            "400 unknown_parameter zzzz | zzzz: is no field that this server knows");
  EXPECT_EQ(wrong(R"("messages": [])"),
            "400 unknown_parameter messages | messages: is a field of /v1/chat/completions");
  EXPECT_THAT(wrong(R"("": 1)"), HasSubstr(R"("" | "": is no field)"));
  // However long it is.
  const std::string field(100'000, 'a');
  EXPECT_THAT(wrong("\"" + field + "\": 1"), StartsWith("400 unknown_parameter aaaa"));
  EXPECT_LT(wrong("\"" + field + "\": 1").size(), 250);
}

TEST(CompletionRequest, IsRefusedForAFieldThatWouldChangeTheAnswer) {
  EXPECT_EQ(wrong(R"("suffix": "end")"),
            "400 unsupported_parameter suffix | suffix: is not supported: text is generated only "
            "behind the prompt; accepted only as \"\"");
  EXPECT_EQ(wrong(R"("suffix": "")"), "none");
  EXPECT_EQ(wrong(R"("suffix": null)"), "none");
  EXPECT_EQ(wrong(R"("use_beam_search": false, "stop_token_ids": [], "length_penalty": 1.0)"),
            "none");
  EXPECT_THAT(wrong(R"("stop_token_ids": [[]])"), StartsWith("400 unsupported_parameter stop_"));
}

TEST(CompletionRequest, MayHaveFieldsThatChangeNothing) {
  EXPECT_EQ(wrong(R"("user": "u", "metadata": {"a": 1}, "store": false, "service_tier": "auto",
                     "prompt_cache_key": "k", "safety_identifier": "s")"),
            "none");
  EXPECT_EQ(wrong(R"("store": true)"),
            "400 unsupported_value store | store: expected false or null, found true");
  EXPECT_EQ(wrong(R"("service_tier": "flex")"),
            "400 unsupported_value service_tier | service_tier: expected \"auto\", \"default\" or "
            "null, found \"flex\"");
  EXPECT_THAT(wrong(R"("user": 3)"), HasSubstr("user: expected string or null, found 3"));
}

TEST(CompletionRequest, TakesNullForEveryFieldThatMayBeAbsent) {
  std::string members;
  for (const char* name : {"model",
                           "max_tokens",
                           "max_completion_tokens",
                           "n",
                           "best_of",
                           "stop",
                           "temperature",
                           "top_p",
                           "top_k",
                           "min_p",
                           "presence_penalty",
                           "frequency_penalty",
                           "repetition_penalty",
                           "logit_bias",
                           "seed",
                           "echo",
                           "logprobs",
                           "stream",
                           "stream_options",
                           "timeout",
                           "user",
                           "suffix",
                           "store",
                           "service_tier"})
    members += fmt::format("{}\"{}\": null", members.empty() ? "" : ", ", name);
  const CompletionRequest request = with(members).value();
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_FALSE(request.logprobs);
}

TEST(CompletionRequest, IsForTheModelThatIsServed) {
  EXPECT_EQ(wrong(R"("model": "tiny")"), "none");
  EXPECT_EQ(wrong(R"("model": "gpt-4")"),
            "404 model_not_found model | model: this server has tiny, not gpt-4");
  EXPECT_THAT(wrong(R"("model": 4)"), HasSubstr("model: expected a string, found 4"));
}

TEST(CompletionRequest, IsOneJsonObject) {
  const auto body = [](const std::string& text) {
    return problem(parse_completion_request(text, test_defaults()));
  };
  EXPECT_EQ(body(""), "400 invalid_json  | the body is empty; expected a JSON object");
  EXPECT_EQ(body("[]"), "400 invalid_json  | the body: expected a JSON object, found an array");
  EXPECT_THAT(body(R"({"prompt": "x")"), HasSubstr("not valid JSON: it ends too early"));
  EXPECT_THAT(body(R"({"prompt": "x"} y)"), HasSubstr("what is at byte 16 stands behind the end"));
  EXPECT_THAT(body("{\"prompt\": \"\xff\"}"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(body(R"({"prompt": NaN})"), HasSubstr("not valid JSON"));
  EXPECT_THAT(body(std::string(100'000, '[')), HasSubstr("nested more than"));
}

TEST(CompletionRequest, HasOneToEightAnswers) {
  EXPECT_EQ(with(R"("n": 8)").value().answers, 8);
  EXPECT_EQ(with(R"("n": 3, "best_of": 3)").value().answers, 3);
  EXPECT_EQ(wrong(R"("n": 0)"),
            "400 invalid_value n | n: expected an integer from 1 to 8, found 0");
  EXPECT_THAT(wrong(R"("n": 9)"), HasSubstr("found 9"));
  EXPECT_THAT(wrong(R"("n": 1.0)"), HasSubstr("found 1.0"));
  EXPECT_THAT(wrong(R"("n": "2")"), HasSubstr("found \"2\""));
  EXPECT_EQ(wrong(R"("best_of": 3)"),
            "400 unsupported_value best_of | best_of: is 3, but n is 1; only as many answers are "
            "made as are returned");
}

TEST(CompletionRequest, HasOneLimitOfTokensUnderTwoNames) {
  EXPECT_EQ(with(R"("max_tokens": 0)").value().max_tokens, 0);
  EXPECT_EQ(with(R"("max_completion_tokens": 5)").value().max_tokens, 5);
  EXPECT_EQ(with(R"("max_completion_tokens": 5, "max_tokens": 5)").value().max_tokens, 5);
  EXPECT_EQ(wrong(R"("max_completion_tokens": 5, "max_tokens": 6)"),
            "400 invalid_value max_completion_tokens | max_completion_tokens: is 5, but max_tokens "
            "is 6; send one of them");
  EXPECT_THAT(wrong(R"("max_tokens": -1)"), HasSubstr("max_tokens: expected an integer from 0"));
  EXPECT_THAT(wrong(R"("max_tokens": 99999999999999999999999999)"), HasSubstr("max_tokens: "));
}

TEST(CompletionRequest, StopsAtOneStringOrAtSeveral) {
  EXPECT_THAT(with(R"("stop": "\n")").value().stop, ElementsAre("\n"));
  EXPECT_THAT(with(R"("stop": ["a", "b"])").value().stop, ElementsAre("a", "b"));
  EXPECT_THAT(with(R"("stop": [])").value().stop, IsEmpty());
  EXPECT_THAT(wrong(R"("stop": "")"), HasSubstr("stop[0] | stop[0]: is empty"));
  EXPECT_EQ(wrong(R"("stop": ["a", 5])"),
            "400 invalid_value stop[1] | stop[1]: expected a string, found 5");
  EXPECT_THAT(wrong(R"("stop": 5)"), HasSubstr("stop: expected a string or an array of strings"));
  std::string many;
  for (size_t i = 0; i <= limits::kStops; ++i) many += fmt::format("{}\"s\"", i ? "," : "");
  EXPECT_THAT(wrong("\"stop\": [" + many + "]"), HasSubstr("stop: 65 stop strings"));
}

TEST(CompletionRequest, SaysHowItIsStreamed) {
  const CompletionRequest request =
      with(R"("stream": true, "stream_options": {"include_usage": true})").value();
  EXPECT_TRUE(request.stream && request.include_usage);
  EXPECT_EQ(wrong(R"("stream_options": {"include_usage": true})"),
            "400 invalid_value stream_options | stream_options: is only for \"stream\": true");
  EXPECT_EQ(wrong(R"("stream": true, "stream_options": {"include_usag": true})"),
            "400 unknown_parameter stream_options.include_usag | stream_options.include_usag: is "
            "no field that this server knows; did you mean include_usage?");
  EXPECT_THAT(wrong(R"("stream": true, "stream_options": {"include_obfuscation": true})"),
              HasSubstr("stream_options.include_obfuscation: is not supported"));
  EXPECT_THAT(wrong(R"("stream": 1)"), HasSubstr("stream: expected true or false, found 1"));
}

TEST(CompletionRequest, MayHaveATimeoutInSeconds) {
  using std::chrono::milliseconds;
  EXPECT_EQ(with(R"("timeout": 2)").value().timeout, milliseconds(2000));
  EXPECT_EQ(with(R"("timeout": 0.1)").value().timeout, milliseconds(100));
  EXPECT_EQ(with(R"("timeout": 1e-9)").value().timeout, milliseconds(1));
  EXPECT_THAT(wrong(R"("timeout": 0)"), HasSubstr("timeout: expected more than 0"));
  EXPECT_THAT(wrong(R"("timeout": 1e9)"), HasSubstr("timeout: expected more than 0"));
  EXPECT_THAT(wrong(R"("timeout": "2")"), HasSubstr("timeout: expected a number"));
}

TEST(CompletionRequest, IsSampledAsItSaysThenAsTheModelSays) {
  const engine::SamplingParameters said =
      with(R"("temperature": 0.5, "top_p": 0.25, "top_k": 5, "min_p": 0.125, "seed": 3,
              "presence_penalty": 1, "frequency_penalty": -2, "repetition_penalty": 1.5)")
          .value()
          .sampling;
  EXPECT_EQ(said.temperature, 0.5f);
  EXPECT_EQ(said.top_p, 0.25f);
  EXPECT_EQ(said.top_k, 5);
  EXPECT_EQ(said.min_p, 0.125f);
  EXPECT_EQ(said.seed, 3);
  EXPECT_EQ(said.presence_penalty, 1);
  EXPECT_EQ(said.frequency_penalty, -2);
  EXPECT_EQ(said.repetition_penalty, 1.5f);

  ApiDefaults defaults = test_defaults();
  defaults.sampling.temperature = 0.75f;
  defaults.sampling.top_k = 20;
  defaults.sampling.repetition_penalty = 1.25f;
  engine::SamplingParameters p = with("", defaults).value().sampling;
  EXPECT_EQ(p.temperature, 0.75f);
  EXPECT_EQ(p.top_k, 20);
  EXPECT_EQ(p.repetition_penalty, 1.25f);
  EXPECT_EQ(p.seed, 77);
  p = with(R"("temperature": 1, "top_k": -1)", defaults).value().sampling;
  EXPECT_EQ(p.temperature, 1);
  EXPECT_EQ(p.top_k, 0);
}

TEST(CompletionRequest, IsGreedyAtTemperatureZero) {
  ApiDefaults defaults = test_defaults();
  defaults.sampling.temperature = 0.75f;
  defaults.sampling.top_p = 0.5f;
  const engine::SamplingParameters p =
      with(R"("temperature": 0, "top_k": 7, "presence_penalty": 2)", defaults).value().sampling;
  EXPECT_EQ(p.temperature, 0);
  EXPECT_EQ(p.top_k, 0);
  EXPECT_EQ(p.top_p, 1);
  EXPECT_EQ(p.presence_penalty, 2);
}

TEST(CompletionRequest, SamplesWhereItCutsWhatCanBeSampled) {
  EXPECT_EQ(with(R"("top_p": 0.9)").value().sampling.temperature, 1);
  EXPECT_EQ(with(R"("top_k": 5)").value().sampling.temperature, 1);
  EXPECT_EQ(with(R"("min_p": 0.1)").value().sampling.temperature, 1);
  // What cuts nothing says nothing, nor does a seed.
  EXPECT_EQ(with(R"("top_p": 1, "top_k": 0, "min_p": 0, "seed": 5)").value().sampling.temperature,
            0);
}

TEST(CompletionRequest, NamesTheSamplingParameterThatCannotBe) {
  EXPECT_EQ(wrong(R"("top_p": 2)"),
            "400 invalid_value top_p | top_p is 2; expected more than 0 and at most 1");
  EXPECT_THAT(wrong(R"("top_p": 2, "temperature": 0)"), HasSubstr("top_p is 2"));
  EXPECT_THAT(wrong(R"("temperature": -1)"), HasSubstr("temperature is -1; expected a finite"));
  EXPECT_THAT(wrong(R"("temperature": 1e300)"), HasSubstr("temperature is inf"));
  EXPECT_THAT(wrong("\"presence_penalty\": -" + std::string(400, '9')),
              HasSubstr("presence_penalty is -inf"));
  EXPECT_THAT(wrong(R"("min_p": 1)"), HasSubstr("min_p is 1"));
  EXPECT_THAT(wrong(R"("repetition_penalty": 0)"), HasSubstr("repetition_penalty is 0"));
  EXPECT_THAT(wrong(R"("temperature": "hot")"),
              HasSubstr("temperature: expected a number, found \"hot\""));
  EXPECT_THAT(wrong(R"("top_k": -2)"), HasSubstr("top_k: expected an integer from 0 (all)"));
  EXPECT_THAT(wrong(R"("seed": -1)"), HasSubstr("seed: expected an integer from 0 to 184467440"));
  EXPECT_EQ(with(R"("seed": 18446744073709551615)").value().sampling.seed, UINT64_MAX);
}

TEST(CompletionRequest, BiasesTokensByTheirIds) {
  EXPECT_THAT(with(R"("logit_bias": {"999": -100, "0": 1.5})").value().sampling.logit_bias,
              ElementsAre(Pair(999, -100.0f), Pair(0, 1.5f)));
  EXPECT_EQ(wrong(R"("logit_bias": {"1000": 1})"),
            "400 invalid_value logit_bias.1000 | logit_bias.1000: expected a token id from 0 to "
            "999 as name");
  EXPECT_THAT(wrong(R"("logit_bias": {"01": 1})"), HasSubstr("logit_bias.01: expected a token"));
  EXPECT_THAT(wrong(R"("logit_bias": {"-1": 1})"), HasSubstr("logit_bias.-1: expected a token"));
  EXPECT_THAT(wrong(R"("logit_bias": {"": 1})"), HasSubstr("logit_bias.: expected a token id"));
  EXPECT_THAT(wrong(R"("logit_bias": {"5": null})"), HasSubstr("logit_bias.5: expected a finite"));
  EXPECT_THAT(wrong(R"("logit_bias": {"5": 1e300})"), HasSubstr("logit_bias.5: expected a finite"));
  EXPECT_THAT(wrong(R"("logit_bias": [])"), HasSubstr("logit_bias: expected an object"));
}

}  // namespace
}  // namespace deltafin::serve
