// CHECK: our own bugs stop the process with a place and a reason. Never for input (errors are
// values, base/result.h): a CHECK that a file, a request or a route can reach is itself a bug.
#pragma once

namespace deltafin {

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace deltafin

#define CHECK(condition)                  \
  (static_cast<bool>(condition) ? void(0) \
                                : ::deltafin::check_failed(#condition, __FILE__, __LINE__))

// Only inside hot loops; on in dev and sanitizer builds.
#ifdef DELTAFIN_DCHECK
#define DCHECK(condition) CHECK(condition)
#else
#define DCHECK(condition) void(0)
#endif
