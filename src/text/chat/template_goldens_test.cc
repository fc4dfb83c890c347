// Every template against what the published code gave (tests/golden/chat/goldens-*.json).
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "text/chat/conversation.h"
#include "text/chat/kimi_k2_template.h"
#include "text/chat/kimi_k3_template.h"
#include "text/chat/qwen35_template.h"
#include "text/chat/qwen3_template.h"
#include "text/chat/test_goldens.h"

namespace deltafin::text {
namespace {

using Render = Result<std::vector<Segment>> (*)(const Conversation&, const ChatOptions&);

struct Variant {
  const char* file;
  const char* variant;  // null: the file has only one
  Render render;
  size_t case_count;
};

constexpr Variant kVariants[] = {
    {"goldens-k3.json", nullptr, render_kimi_k3, 131},
    {"goldens-k2.json", "k2-instruct-2508", render_kimi_k2_instruct, 107},
    {"goldens-k2.json", "k2-thinking", render_kimi_k2_thinking, 107},
    {"goldens-qwen3.json", "qwen3-current", render_qwen3, 108},
    {"goldens-qwen3.json", "qwen3-2504", render_qwen3, 7},
    {"goldens-qwen35.json", "qwen35-4b", render_qwen35, 118},
    {"goldens-qwen35.json", "qwen35-2b", render_qwen35_small, 66},
};

// Where we do something else than the published code, on purpose (docs/chat.md).
struct Deviation {
  const char* file;
  const char* variant;  // null: all of the file
  const char* name;
  // What the published text has, and we do not; null: we refuse, or the published code does.
  const char* from;
  // What we have in its place; where we refuse, "error: " and our message; where only the published
  // code refuses, a part of our text.
  const char* to;
};

constexpr const char* kUnknownRole =
    "error: messages[0].role: expected system, user, assistant or tool, found \"developer\"";
constexpr const char* kAssistant = "<|im_start|>assistant\n";

constexpr Deviation kDeviations[] = {
    // Dropped without a word (K3, Qwen3) or taken for a system message (K2).
    {"goldens-k3.json", nullptr, "unknown-role-skipped", nullptr, kUnknownRole},
    {"goldens-k2.json", nullptr, "unknown-role-skipped", nullptr, kUnknownRole},
    {"goldens-qwen3.json", nullptr, "unknown-role-skipped", nullptr, kUnknownRole},
    {"goldens-qwen3.json", nullptr, "developer-role", nullptr, kUnknownRole},
    // A call without `function`.
    {"goldens-k2.json", nullptr, "call-flat-shape", nullptr,
     "<|tool_call_begin|>a<|tool_call_argument_begin|>{\"n\": 1}<|tool_call_end|>"
     "<|tool_calls_section_end|><|im_end|><|im_system|>tool<|im_middle|>## Return of a\n"},
    // Python's word for nothing at all.
    {"goldens-k2.json", "k2-thinking", "call-reasoning-null", "None", ""},
    // Parts: Python's spelling of a list, nothing, or an error.
    {"goldens-k2.json", "k2-instruct-2508", "parts-tool-result",
     "[{'type': 'text', 'text': '3 °C'}, {'type': 'text', 'text': ', rain'}]", "3 °C, rain"},
    {"goldens-qwen3.json", nullptr, "parts-user", "user\n<", "user\nHello world!<"},
    {"goldens-qwen3.json", nullptr, "parts-empty", nullptr, kAssistant},
    {"goldens-qwen3.json", nullptr, "parts-system-assistant", nullptr,
     "<|im_start|>system\nBe nice.<|im_end|>\n<|im_start|>user\nq<|im_end|>\n"
     "<|im_start|>assistant\nab<|im_end|>\n<|im_start|>user\nc<|im_end|>\n"
     "<|im_start|>assistant\n"},
    {"goldens-qwen3.json", nullptr, "parts-image", nullptr,
     "error: messages[0].content[1]: Qwen3 reads text only"},
    {"goldens-qwen3.json", "qwen3-current", "parts-tool-result", "<tool_response>\n\n",
     "<tool_response>\n3 °C, rain\n"},
    {"goldens-qwen3.json", "qwen3-2504", "parts-tool-result",
     "[{'type': 'text', 'text': '3 °C'}, {'type': 'text', 'text': ', rain'}]", "3 °C, rain"},
    {"goldens-qwen3.json", "qwen3-2504", "null-assistant", nullptr, kAssistant},
    {"goldens-qwen3.json", "qwen3-2504", "call-null-content", nullptr, "</tool_call><|im_end|>\n"},
    {"goldens-qwen3.json", "qwen3-2504", "call-no-content-key", nullptr,
     "</tool_call><|im_end|>\n"},
    // OpenAI's strings are parsed first; what comes out is compared as NAME+parsed.
    {"goldens-qwen35.json", "qwen35-4b", "call-args-string", nullptr, "</tool_call><|im_end|>\n"},
    {"goldens-qwen35.json", "qwen35-4b", "call-args-string-empty", nullptr,
     "</tool_call><|im_end|>\n"},
    {"goldens-qwen35.json", "qwen35-4b", "call-args-big-numbers", nullptr,
     "</tool_call><|im_end|>\n"},
    {"goldens-qwen35.json", "qwen35-4b", "call-args-string-dup-keys", nullptr,
     "</tool_call><|im_end|>\n"},
    {"goldens-qwen35.json", "qwen35-4b", "call-args-string-nan", nullptr,
     "</tool_call><|im_end|>\n"},
    {"goldens-qwen35.json", "qwen35-4b", "call-args-string-padded", nullptr,
     "</tool_call><|im_end|>\n"},
    {"goldens-qwen35.json", "qwen35-4b", "call-args-string-blank", nullptr,
     "</tool_call><|im_end|>\n"},
    {"goldens-qwen35.json", "qwen35-4b", "call-args-floats", nullptr, "</tool_call><|im_end|>\n"},
};

class TemplateGoldens : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    const JsonValue file = read_chat_golden(GetParam().file);
    for (const JsonValue& golden : *field(file, "cases").as_array()) {
      if (GetParam().variant == nullptr || string_field(golden, "variant") == GetParam().variant) {
        cases_.push_back(golden);
      }
    }
  }

  static Result<std::vector<Segment>> render(const JsonValue& golden) {
    TRY(const Conversation conversation,
        parse_conversation(field(golden, "messages"), field(golden, "tools")));
    return GetParam().render(conversation, options_of(golden));
  }

  static const Deviation* find_deviation(const std::string& name) {
    for (const Deviation& d : kDeviations) {
      const bool is_of_variant = d.variant == nullptr || d.variant == GetParam().variant;
      if (std::string_view(d.file) == GetParam().file && is_of_variant && name == d.name) return &d;
    }
    return nullptr;
  }

  static void expect_deviation(const Deviation& deviation, const JsonValue& golden,
                               const Result<std::vector<Segment>>& segments) {
    const std::string ours = segments ? joined(*segments) : "error: " + segments.error().what;
    std::string text = string_field(golden, "text");
    if (deviation.from != nullptr && !text.empty()) {
      const size_t at = text.find(deviation.from);
      ASSERT_NE(at, std::string::npos) << deviation.name;
      text.replace(at, std::string_view(deviation.from).size(), deviation.to);
      EXPECT_EQ(ours, text) << deviation.name;
    } else {
      EXPECT_NE(ours.find(deviation.to), std::string::npos) << deviation.name << ": " << ours;
    }
  }

  std::vector<JsonValue> cases_;
};

INSTANTIATE_TEST_SUITE_P(Published, TemplateGoldens, testing::ValuesIn(kVariants),
                         [](const auto& test) {
                           std::string name = test.param.variant ? test.param.variant : "k3";
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(TemplateGoldens, EveryConversationHasThePublishedText) {
  for (const JsonValue& golden : cases_) {
    const std::string name = string_field(golden, "name");
    const Result<std::vector<Segment>> segments = render(golden);
    if (const Deviation* deviation = find_deviation(name)) {
      expect_deviation(*deviation, golden, segments);
      continue;
    }
    if (field(golden, "text").is_null()) {
      EXPECT_FALSE(segments) << name << ": " << joined(*segments);
      continue;
    }
    ASSERT_TRUE(segments) << name << ": " << segments.error().what;
    EXPECT_EQ(joined(*segments), string_field(golden, "text")) << name;
    const JsonValue::Array* published = field(golden, "segments").as_array();
    if (published == nullptr) continue;
    std::vector<Segment> expected;
    for (const JsonValue& segment : *published) {
      const JsonValue::Array& pair = *segment.as_array();
      expected.push_back({*pair[0].as_string(),
                          *pair[1].as_bool() ? SpecialTokens::Parse : SpecialTokens::AsText});
    }
    EXPECT_EQ(*segments, expected) << name;
  }
  EXPECT_EQ(cases_.size(), GetParam().case_count);
}

}  // namespace
}  // namespace deltafin::text
