#include "text/chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "io/simulated.h"
#include "text/chat/test_channels.h"

namespace deltafin::text {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kK3Config = R"({"architectures": ["KimiK3ForConditionalGeneration"]})";

std::string choice(const io::SimulatedStorage& storage) {
  const Result<const ChatTemplate*> chosen = choose_template(storage, "m");
  return chosen ? std::string((*chosen)->name) : chosen.error().what;
}

TEST(ChatTemplate, EveryTemplateIsFoundByItsName) {
  for (const ChatTemplate& chat_template : chat_templates()) {
    EXPECT_EQ(find_template(chat_template.name), &chat_template);
  }
  EXPECT_EQ(find_template("qwen4"), nullptr);
  EXPECT_EQ(template_names(), "kimi-k3, kimi-k2, kimi-k2-thinking, qwen3, qwen3.5, qwen3.5-small");
}

TEST(ChatTemplate, OutputBeginsWhereThePromptEnds) {
  // Whether the prompt's last words open the reasoning, in this template's own way.
  const auto opens = [](const ChatTemplate& chat_template, const ChatOptions& options) {
    Conversation conversation;
    conversation.messages.emplace_back();  // of a user
    const std::string prompt = joined(chat_template.render(conversation, options).value());
    return prompt.ends_with("<|open|>think<|sep|>") || prompt.ends_with("<think>\n");
  };
  for (const char* name : {"kimi-k3", "kimi-k2", "kimi-k2-thinking", "qwen3.5", "qwen3.5-small"}) {
    const ChatTemplate& chat_template = *find_template(name);
    for (const std::optional<bool> thinking : {std::optional<bool>(), {true}, {false}}) {
      ChatOptions options;
      options.thinking = thinking;
      EXPECT_EQ(chat_template.start(options) == ChannelStart::Reasoning,
                opens(chat_template, options))
          << name;
    }
  }
  // Qwen3 opens it itself, unless the prompt has closed it.
  const ChatTemplate& qwen3 = *find_template("qwen3");
  EXPECT_EQ(qwen3.start({}), ChannelStart::Reasoning);
  ChatOptions without_thinking;
  without_thinking.thinking = false;
  EXPECT_EQ(qwen3.start(without_thinking), ChannelStart::Answer);
}

TEST(TemplateChoice, K3HasNoTemplateFileAndIsKnownByItsArchitecture) {
  io::SimulatedStorage storage;
  storage.add_file("m/config.json", kK3Config);
  EXPECT_EQ(choice(storage), "kimi-k3");
  storage.add_file("m/tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_EQ(choice(storage), "kimi-k3");
}

TEST(TemplateChoice, AnUnknownTemplateIsRefusedWithItsHashAndTheWayOut) {
  io::SimulatedStorage storage;
  storage.add_file("m/config.json", kK3Config);
  storage.add_file("m/chat_template.jinja", "{{ '<|im_start|>' }}");
  EXPECT_THAT(choice(storage),
              AllOf(HasSubstr("m/chat_template.jinja: a chat template that this program does not "
                              "know (SHA-256 "),
                    HasSubstr("choose one with --template: kimi-k3, kimi-k2"),
                    HasSubstr("qwen3 looks most like it")));
  io::SimulatedStorage in_config;
  in_config.add_file("m/tokenizer_config.json", R"({"chat_template": "<|im_middle|>"})");
  EXPECT_THAT(choice(in_config), AllOf(HasSubstr("m/tokenizer_config.json: chat_template: a chat"),
                                       HasSubstr("; kimi-k2 looks most like it")));
}

TEST(TemplateChoice, NoTemplateAtAllIsRefusedToo) {
  io::SimulatedStorage storage;
  storage.add_file("m/config.json", R"({"architectures": ["Qwen3ForCausalLM"]})");
  EXPECT_THAT(choice(storage), AllOf(HasSubstr("m: no chat template"), HasSubstr("--template")));
}

TEST(TemplateChoice, AListOfTemplatesNeedsADefault) {
  io::SimulatedStorage storage;
  storage.add_file("m/tokenizer_config.json",
                   R"({"chat_template": [{"name": "rag", "template": "x"}]})");
  EXPECT_THAT(choice(storage), HasSubstr("a list with one named \"default\""));
  io::SimulatedStorage other;
  other.add_file("m/tokenizer_config.json",
                 R"({"chat_template": [{"name": "default", "template": "<function="}]})");
  EXPECT_THAT(choice(other), AllOf(HasSubstr("\"default\": a chat template that"),
                                   HasSubstr("qwen3.5 looks most like it")));
}

TEST(TemplateChoice, PublishedTemplatesAreKnownWithOrWithoutALastLineFeed) {
  const char* data = std::getenv("DELTAFIN_TEST_DATA");
  const std::string folder = io::join_path(data != nullptr ? data : "", "chat/third-party");
  if (data == nullptr || !io::PosixStorage().is_directory(folder)) {
    std::cout << "skipped: DELTAFIN_TEST_DATA does not name a folder with chat/third-party/\n";
    GTEST_SKIP();
  }
  for (const auto& [file, name] : std::initializer_list<std::pair<const char*, const char*>>{
           {"k2/kimi-k2-instruct-2508.jinja", "kimi-k2"},
           {"k2/kimi-k2-thinking-hf.jinja", "kimi-k2-thinking"},
           {"qwen3/qwen3-current.jinja", "qwen3"},
           {"qwen3/qwen3-2504.jinja", "qwen3"},
           {"qwen35/qwen35-4b.jinja", "qwen3.5"},
           {"qwen35/qwen35-0.8b-2b.jinja", "qwen3.5-small"}}) {
    std::string text =
        io::read_text(io::PosixStorage(), io::join_path(folder, file), 1u << 20).value();
    if (text.ends_with('\n')) text.pop_back();
    for (const char* end : {"", "\n"}) {
      io::SimulatedStorage storage;
      storage.add_file("m/chat_template.jinja", text + end);
      EXPECT_EQ(choice(storage), name) << file;
    }
    io::SimulatedStorage storage;
    storage.add_file("m/tokenizer_config.json", nlohmann::json{{"chat_template", text}}.dump());
    EXPECT_EQ(choice(storage), name) << file;
  }
}

TEST(ChatTemplate, AVocabularyMustHaveTheControlTokens) {
  const auto tokenizer = byte_tokenizer({"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>"});
  EXPECT_TRUE(check_vocabulary(*find_template("kimi-k3"), *tokenizer));
  const Status status = check_vocabulary(*find_template("qwen3"), *tokenizer);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().what,
              HasSubstr("the chat template qwen3 needs the control token <|im_start|>"));
}

// Every field that a user fills, with every control token in it: the only control tokens among the
// ids are those that the template writes without them.
TEST(ChatTemplate, NothingThatAUserWritesBecomesStructure) {
  for (const ChatTemplate& chat_template : chat_templates()) {
    std::vector<std::string> controls(chat_template.controls.begin(), chat_template.controls.end());
    for (const char* more : {"<think>", "</think>", "<tool_response>", "</tool_response>"}) {
      if (std::find(controls.begin(), controls.end(), more) == controls.end()) {
        controls.push_back(more);
      }
    }
    const auto tokenizer = byte_tokenizer(controls);
    const auto control_ids = [&](const std::string& words) {
      const auto conversation = parse_conversation(
          parse_json(R"([{"role": "system", "name": "W", "content": "W"},
                         {"role": "user", "name": "W", "content": [{"type": "text", "text": "W"}]},
                         {"role": "assistant", "name": "W", "reasoning_content": "W", "content": "W",
                          "tool_calls": [{"id": "W", "name": "W", "arguments": {"W": ["W"], "k": "W"}},
                                         {"id": "b", "name": "W", "arguments": "{\"a\": \"W\"}"}]},
                         {"role": "tool", "name": "W", "tool_call_id": "W", "content": "W"},
                         {"role": "assistant", "reasoning_content": "W", "content": "W"}])",
                     JsonDialect::Strict)
              .value(),
          parse_json(R"([{"type": "function", "function": {"name": "W", "description": "W"}}])",
                     JsonDialect::Strict)
              .value());
      Conversation filled = conversation.value();
      const auto fill = [&](std::string& text) {
        for (size_t at = 0; (at = text.find('W', at)) != std::string::npos; at += words.size()) {
          text.replace(at, 1, words);
        }
      };
      const auto fill_json = [&](auto& self, JsonValue& value) -> void {
        if (auto* string = std::get_if<std::string>(&value.value)) fill(*string);
        if (auto* array = std::get_if<JsonValue::Array>(&value.value)) {
          for (JsonValue& element : *array) self(self, element);
        }
        if (auto* object = std::get_if<JsonValue::Object>(&value.value)) {
          for (JsonMember& member : *object) {
            fill(member.key);
            self(self, member.value);
          }
        }
      };
      for (JsonValue& tool : filled.tools) fill_json(fill_json, tool);
      for (Message& message : filled.messages) {
        fill(message.name);
        fill(message.tool_call_id);
        if (message.reasoning_content) fill(*message.reasoning_content);
        if (auto* string = std::get_if<std::string>(&message.content)) fill(*string);
        if (auto* parts = std::get_if<std::vector<ContentPart>>(&message.content)) {
          for (ContentPart& part : *parts) fill(part.text);
        }
        for (ToolCall& call : message.tool_calls) {
          fill(call.id);
          fill(call.name);
          fill_json(fill_json, *call.arguments);
        }
      }
      const auto segments = chat_template.render(filled, {}).value();
      std::vector<TokenId> ids;
      const auto encoded = encode_segments(*tokenizer, segments).value();
      for (const TokenId id : encoded) {
        if (tokenizer->is_special(id)) ids.push_back(id);
      }
      EXPECT_NE(joined(segments).find(words), std::string::npos);
      return ids;
    };
    const std::vector<TokenId> expected = control_ids("word");
    for (const std::string& control : controls) {
      EXPECT_EQ(control_ids("x" + control + "y"), expected) << chat_template.name << control;
    }
  }
}

}  // namespace
}  // namespace deltafin::text
