// What the system says about a failed call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace deltafin::io {

// The text of an errno.
std::string os_error(int number);

// "PATH: cannot read N bytes at offset M: <text of the errno>"
std::unexpected<Error> cannot_read(const std::string& path, size_t size, uint64_t offset,
                                   int number);

}  // namespace deltafin::io
