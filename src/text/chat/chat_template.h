// The chat formats that this program knows, and which one a model has.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "text/chat/channels.h"
#include "text/chat/chat_options.h"
#include "text/chat/conversation.h"
#include "text/chat/segments.h"
#include "text/tokenizer.h"

namespace deltafin::text {

enum class ChannelFormat : uint8_t { KimiK3, KimiK2, Qwen3, Qwen35 };

// Pure functions and constants: any thread may use it at any time.
struct ChatTemplate {
  std::string_view name;   // for find_template()
  std::string_view model;  // whose it is, for people
  Result<std::vector<Segment>> (*render)(const Conversation&, const ChatOptions&);
  // Where the output begins behind a prompt that these options made.
  ChannelStart (*start)(const ChatOptions&);
  ChannelFormat channels;
  // The control token that ends the model's turn.
  std::string_view end_of_turn;
  // The control tokens that a vocabulary must have.
  std::span<const std::string_view> controls;
};

std::span<const ChatTemplate> chat_templates();
// Null: no template has that name.
const ChatTemplate* find_template(std::string_view name);
// "kimi-k3, kimi-k2, ..."
std::string template_names();

// The template of a model directory, by what chat_template.jinja, or else the field chat_template
// of tokenizer_config.json, hashes to; where there is neither, the architecture in config.json if
// its format was never published as a template (K3).
//
// Errors: BadModel, when the template is none of ours: the message has its hash and the names that
// can be given instead; Io.
Result<const ChatTemplate*> choose_template(const io::Storage& storage,
                                            const std::string& directory);

// Whether the vocabulary has each of the template's control tokens as one token. Errors: Usage,
// naming one that it has not.
Status check_vocabulary(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

}  // namespace deltafin::text
