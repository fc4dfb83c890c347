// Standard output: what the user asked for, and nothing else.
#pragma once

#include <string_view>

#include "base/result.h"

namespace deltafin::cli {

// Unbuffered: what write() has taken is on its way. After a failure it takes no more, so a caller
// may look at it once in a while.
class StandardOutput {
 public:
  // `descriptor` stays open and is not owned; 1 but in tests.
  explicit StandardOutput(int descriptor = 1) : descriptor_(descriptor) {}

  void write(std::string_view text);
  // Ends the text: a line break unless there is one, or there is no text.
  void finish_line();

  bool is_open() const { return error_number_ == 0; }
  // Whoever read us went away, as `head` does: nobody wants more, and nothing is wrong.
  bool reader_is_gone() const;
  // Errors: Io, for a write that failed; a reader that is gone is none.
  Status status() const;

 private:
  int descriptor_;
  int error_number_ = 0;
  char last_ = '\n';
};

}  // namespace deltafin::cli
