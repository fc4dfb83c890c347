// Names in HTTP are ASCII and have no case.
#pragma once

#include <string>
#include <string_view>

namespace deltafin::serve {

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

}  // namespace deltafin::serve
