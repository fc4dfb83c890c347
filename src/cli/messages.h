// What the program says beside its output, all in one form.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace deltafin::cli {

// "0.1.0"
const char* version();

std::string first_line(const std::string& text);

// Prints a whole text, such as a help text, to standard output. The exit status 0, or Io.
Result<int> print(std::string_view text);

// "deltafin: warning: <text>" on standard error.
void warn(const std::string& text);

// What is printed for an error, and how it ends: "deltafin: <what>", its further lines, then a hint
// for a usage error that has none, or the exit status and its meaning. `stop_signal` is what the
// user did if the error is that somebody stopped us; may be null. `command` may be empty.
std::string error_text(const Error& error, const std::string& command, const char* stop_signal);

}  // namespace deltafin::cli
