// Ids of rendered conversations against those of the published code. The vocabularies are others',
// so they are not in the repository: DELTAFIN_TEST_DATA names the folder that has them, and without
// it these tests skip.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "io/simulated.h"
#include "text/chat/channel_parser.h"
#include "text/chat/chat_template.h"
#include "text/chat/test_channels.h"
#include "text/chat/test_goldens.h"

namespace deltafin::text {
namespace {

using Names = std::map<std::string, TokenId>;

const Names kK3Names = {{"<|end_of_msg|>", 163586},  {"<|open|>", 163587},
                        {"<|close|>", 163588},       {"<|sep|>", 163589},
                        {"<|media_begin|>", 163602}, {"<|media_content|>", 163603},
                        {"<|media_end|>", 163604},   {"<|media_pad|>", 163605}};
const Names kK2Names = {{"[EOS]", 163585},
                        {"<|im_end|>", 163586},
                        {"<|im_user|>", 163587},
                        {"<|im_assistant|>", 163588},
                        {"<|im_system|>", 163594},
                        {"<|tool_calls_section_begin|>", 163595},
                        {"<|tool_calls_section_end|>", 163596},
                        {"<|tool_call_begin|>", 163597},
                        {"<|tool_call_argument_begin|>", 163598},
                        {"<|tool_call_end|>", 163599},
                        {"<|im_middle|>", 163601},
                        {"<think>", 163606},
                        {"</think>", 163607}};

class TemplateIds : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("DELTAFIN_TEST_DATA");
    if (data == nullptr) skip("DELTAFIN_TEST_DATA does not name a folder with tokenizers/");
    if (data != nullptr) folder_ = io::join_path(data, "tokenizers");
  }
  static void skip(const std::string& why) {
    std::cout << "skipped: " << why << "\n";
    GTEST_SKIP();
  }

  std::unique_ptr<Tokenizer> open_kimi(const Names& names) const {
    nlohmann::json config;
    for (const auto& [name, id] : names) {
      config["added_tokens_decoder"][std::to_string(id)]["content"] = name;
    }
    io::SimulatedStorage storage;
    storage.add_file(
        "m/tiktoken.model",
        io::read_text(io::PosixStorage(), io::join_path(folder_, "kimi_tiktoken.model"), 64u << 20)
            .value());
    storage.add_file("m/tokenizer_config.json", config.dump());
    return open_tokenizer(storage, "m").value();
  }

  // Compares all cases of a file whose text is also the published one; returns how many.
  static size_t compare(const Tokenizer& tokenizer, const char* file, const char* variant,
                        const char* template_name, const std::set<std::string>& spelled = {}) {
    const JsonValue goldens = read_chat_golden(file);
    size_t count = 0;
    for (const JsonValue& golden : *field(goldens, "cases").as_array()) {
      if (variant != nullptr && string_field(golden, "variant") != variant) continue;
      const Result<Conversation> conversation =
          parse_conversation(field(golden, "messages"), field(golden, "tools"));
      if (!conversation || field(golden, "text").is_null()) continue;
      const auto segments = find_template(template_name)->render(*conversation, options_of(golden));
      if (!segments || joined(*segments) != string_field(golden, "text")) continue;
      const std::string name = string_field(golden, "name");
      const bool is_same =
          encode_segments(tokenizer, *segments).value() == ids_in(field(golden, "ids"));
      EXPECT_EQ(is_same, !spelled.contains(name)) << variant << " " << name;
      ++count;
    }
    return count;
  }

  Result<std::unique_ptr<Tokenizer>> open_qwen() const {
    return open_tokenizer(io::PosixStorage(), io::join_path(folder_, "qwen3"));
  }

  // Ids one by one against the text at once.
  static void compare_outputs(const Tokenizer& tokenizer, const char* file, ChannelFormat format) {
    const JsonValue outputs = read_chat_golden(file);
    for (const JsonValue& golden : *field(outputs, "cases").as_array()) {
      ChannelSetup setup;
      setup.format = format;
      const bool thinks = string_field(golden, "starts_in") == "think" ||
                          bool_field(golden, "enable_thinking").value_or(false);
      setup.start = thinks ? ChannelStart::Reasoning : ChannelStart::Answer;
      TextChannels by_text(setup);
      TokenChannels by_token = TokenChannels::create(tokenizer, setup).value();
      WholeOutput expected, whole;
      expected.add(by_text.push(string_field(golden, "text")));
      expected.add(by_text.finish(OutputEnd::CutOff));
      for (const TokenId id : ids_in(field(golden, "ids"))) whole.add(by_token.push(id).value());
      whole.add(by_token.finish(OutputEnd::CutOff));
      EXPECT_EQ(whole.line(), expected.line()) << file << " " << string_field(golden, "name");
    }
  }

  static std::vector<TokenId> ids_in(const JsonValue& array) {
    std::vector<TokenId> ids;
    for (const JsonValue& id : *array.as_array()) ids.push_back(std::stoi(id.as_number()->text));
    return ids;
  }

  std::string folder_;
};

TEST_F(TemplateIds, KimiK3) {
  EXPECT_EQ(compare(*open_kimi(kK3Names), "goldens-k3.json", nullptr, "kimi-k3"), 126u);
}

TEST_F(TemplateIds, KimiK2) {
  const std::unique_ptr<Tokenizer> tokenizer = open_kimi(kK2Names);
  EXPECT_EQ(compare(*tokenizer, "goldens-k2.json", "k2-instruct-2508", "kimi-k2"), 103u);
  EXPECT_EQ(compare(*tokenizer, "goldens-k2.json", "k2-thinking", "kimi-k2-thinking"), 103u);
}

TEST_F(TemplateIds, Qwen3) {
  const Result<std::unique_ptr<Tokenizer>> tokenizer = open_qwen();
  if (!tokenizer) {
    std::cout << "skipped: " << tokenizer.error().what << "\n";
    GTEST_SKIP();
  }
  // The published tokenizer reads control tokens in what a user wrote; ours does not.
  EXPECT_EQ(compare(**tokenizer, "goldens-qwen3.json", "qwen3-current", "qwen3",
                    {"spell-k2", "spell-qwen", "spell-in-tool-result", "spell-in-arguments",
                     "user-looks-like-tool-response", "only-tool-response-user"}),
            100u);
}

TEST_F(TemplateIds, RecordedOutputsAreReadAsTheirText) {
  compare_outputs(*open_kimi(kK3Names), "outputs-k3.json", ChannelFormat::KimiK3);
  compare_outputs(*open_kimi(kK2Names), "outputs-k2.json", ChannelFormat::KimiK2);
  const Result<std::unique_ptr<Tokenizer>> qwen = open_qwen();
  if (qwen) compare_outputs(**qwen, "outputs-qwen3.json", ChannelFormat::Qwen3);
}

}  // namespace
}  // namespace deltafin::text
