// Ctrl-C and its relatives.
#pragma once

#include "base/cancel.h"

namespace deltafin::cli {

// From now on the first SIGINT or SIGTERM sets the returned token, which lives as long as the
// process, and the second ends the process at once with status 130. Calls that wait for input
// return early. SIGPIPE and SIGXFSZ are ignored: a closed pipe and a file-size limit are errors of
// the write that meets them.
CancelToken& install_signal_handlers();

// The signal that set the token: "Ctrl-C" for SIGINT, "SIGTERM"; null when none came.
const char* stop_signal_name();

// The work that was stopped is over and the program goes on, as if no signal had come: for a Ctrl-C
// only. Returns whether it was one, or none; SIGTERM stays.
bool forget_interrupt();

}  // namespace deltafin::cli
