// What went wrong, in the few kinds that decide what happens next.
#pragma once

#include <cstdint>
#include <string>

namespace deltafin {

// Each code means what to do next; exit_code() is the one table from code to process exit status.
enum class ErrorCode : uint8_t {
  Usage,     // the caller asked for something that does not exist or cannot be: change the request
  BadModel,  // the checkpoint is incomplete, damaged or not supported: fix the model directory
  OverBudget,  // it does not fit into the memory that was allowed: allow more or ask for less
  Io,          // the operating system could not read or write: look at the disk, then try again
  Mismatch,    // a verification found different bits
  Cancelled,   // the user or the client stopped it
};

struct Error {
  ErrorCode code;
  std::string what;  // one lower-case sentence without a full stop; further lines are advice

  // Puts the place in front while an error climbs: "layer 12: <what>".
  Error&& within(const std::string& place) && {
    what = place + ": " + what;
    return std::move(*this);
  }
};

// 2 usage, 3 bad model, 4 over budget, 5 I/O, 6 mismatch, 130 interrupted (docs/ARCHITECTURE.md).
int exit_code(ErrorCode code);

// "usage error", "bad or incomplete model", ...: what the CLI prints behind the exit code.
const char* describe(ErrorCode code);

}  // namespace deltafin
