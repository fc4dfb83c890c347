// What somebody types in a chat: messages, and commands that begin with a slash. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"

namespace deltafin::cli {

struct ChatMessage {
  std::string text;
  bool operator==(const ChatMessage&) const = default;
};

struct ChatCommand {
  enum class Kind : uint8_t { New, Save, Load, Stats, Help };
  Kind kind = Kind::Help;
  std::string file = {};  // of Save and Load
  bool operator==(const ChatCommand&) const = default;
};

using ChatInput = std::variant<ChatMessage, ChatCommand>;

// Two slashes begin a message with one of them. Errors: Usage, for a command that does not exist,
// naming those that do; one without its file, or with more than it takes.
Result<ChatInput> parse_chat_input(std::string_view text);

// A line for each command, and how messages are typed.
std::string chat_input_help();

// Puts lines together: one that ends in a backslash goes on in the next.
class ChatLines {
 public:
  // `line` has no line break at its end. Returns whether the message is complete.
  bool add(std::string_view line);
  // A message has begun and goes on.
  bool is_open() const { return is_open_; }
  // What there is; then it begins anew.
  std::string take();

 private:
  std::string text_;
  bool is_open_ = false;
};

}  // namespace deltafin::cli
