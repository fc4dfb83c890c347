#include "text/chat/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/chat/kimi_k2_template.h"
#include "text/chat/kimi_k3_template.h"
#include "text/chat/qwen35_template.h"
#include "text/chat/qwen3_template.h"

namespace deltafin::text {

namespace {

ChannelStart start_if(bool thinking) {
  return thinking ? ChannelStart::Reasoning : ChannelStart::Answer;
}
ChannelStart thinks_by_default(const ChatOptions& options) {
  return start_if(options.thinking.value_or(true));
}
ChannelStart answers_by_default(const ChatOptions& options) {
  return start_if(options.thinking.value_or(false));
}
// The model itself writes <think>.
ChannelStart answers_always(const ChatOptions&) { return ChannelStart::Answer; }

// <think> is not among those of K2: only the Thinking models have it, and its id is not confirmed.
constexpr std::array<std::string_view, 4> kKimiK3Controls = {"<|open|>", "<|close|>", "<|sep|>",
                                                             "<|end_of_msg|>"};
constexpr std::array<std::string_view, 10> kKimiK2Controls = {"<|im_user|>",
                                                              "<|im_assistant|>",
                                                              "<|im_system|>",
                                                              "<|im_middle|>",
                                                              "<|im_end|>",
                                                              "<|tool_calls_section_begin|>",
                                                              "<|tool_calls_section_end|>",
                                                              "<|tool_call_begin|>",
                                                              "<|tool_call_argument_begin|>",
                                                              "<|tool_call_end|>"};
constexpr std::array<std::string_view, 6> kQwenControlTokens = {
    "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"};

constexpr ChatTemplate kTemplates[] = {
    {"kimi-k3", "Kimi K3", render_kimi_k3, thinks_by_default, ChannelFormat::KimiK3,
     "<|end_of_msg|>", kKimiK3Controls},
    {"kimi-k2", "Kimi K2 Instruct", render_kimi_k2_instruct, answers_always, ChannelFormat::KimiK2,
     "<|im_end|>", kKimiK2Controls},
    {"kimi-k2-thinking", "Kimi K2 Thinking", render_kimi_k2_thinking, answers_always,
     ChannelFormat::KimiK2, "<|im_end|>", kKimiK2Controls},
    {"qwen3", "Qwen3", render_qwen3, thinks_by_default, ChannelFormat::Qwen3, "<|im_end|>",
     kQwenControlTokens},
    {"qwen3.5", "Qwen3.5", render_qwen35, thinks_by_default, ChannelFormat::Qwen35, "<|im_end|>",
     kQwenControlTokens},
    {"qwen3.5-small", "Qwen3.5 0.8B and 2B", render_qwen35_small, answers_by_default,
     ChannelFormat::Qwen35, "<|im_end|>", kQwenControlTokens},
};

}  // namespace

std::span<const ChatTemplate> chat_templates() { return kTemplates; }

const ChatTemplate* find_template(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTemplates), std::end(kTemplates),
                   [&](const ChatTemplate& candidate) { return candidate.name == name; });
  return found == std::end(kTemplates) ? nullptr : found;
}

std::string template_names() {
  std::string names;
  for (const ChatTemplate& chat_template : kTemplates) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", chat_template.name);
  }
  return names;
}

Status check_vocabulary(const ChatTemplate& chat_template, const Tokenizer& tokenizer) {
  for (const std::string_view control : chat_template.controls) {
    TRY(const std::vector<TokenId> ids, tokenizer.encode(control, SpecialTokens::Parse));
    if (ids.size() == 1) continue;
    return fail(ErrorCode::Usage,
                fmt::format("the chat template {} needs the control token {}, which this model's "
                            "vocabulary does not have\n  try another --template: {}",
                            chat_template.name, control, template_names()));
  }
  return {};
}

}  // namespace deltafin::text
