// Where the messages of a chat come from: a terminal with line editing, or lines of anything else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/cancel.h"
#include "base/result.h"

namespace deltafin::cli {

class MessageSource {
 public:
  enum class Kind : uint8_t {
    Message,
    Interrupted,  // Ctrl-C while nothing, or not all, was typed
    End,          // there will be no more
  };
  struct Reading {
    Kind kind = Kind::End;
    std::string text = {};  // may have several lines
  };

  virtual ~MessageSource() = default;
  // Waits for the next one. What was begun is thrown away by an interrupt and sent at the end of
  // input. Errors: Io; Usage for a line of more than limits::kPromptBytes.
  virtual Result<Reading> next() = 0;
  // Whether a person sits there.
  virtual bool is_terminal() const = 0;
};

// One message a line, from `descriptor`, which stays open.
std::unique_ptr<MessageSource> open_line_source(int descriptor, const CancelToken& cancel);

// Standard input with line editing; what it shows goes to standard error. The history is kept in
// `history_file`, nowhere when that is empty.
std::unique_ptr<MessageSource> open_terminal_source(const std::string& history_file,
                                                    const CancelToken& cancel);

// $XDG_STATE_HOME/deltafin/history, or ~/.local/state/deltafin/history, in a folder that is made if
// it can be; empty where neither is known.
std::string chat_history_file();

}  // namespace deltafin::cli
