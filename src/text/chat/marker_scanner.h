// Finds markers in text that comes in pieces.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace deltafin::text {

// Holds back the end of a text as long as a marker may begin there. Linear time; what comes out
// does not depend on the cuts, but for where text is cut.
class MarkerScanner {
 public:
  struct Piece {
    std::string text;
    bool is_marker = false;
  };

  // Every marker must begin with '<', and none may begin with another. They must outlive this.
  explicit MarkerScanner(std::vector<std::string_view> markers);

  std::vector<Piece> push(std::string_view text);
  // What is held back, which no longer can become a marker. Afterwards the scanner is as new.
  std::string take_held() { return std::exchange(held_, {}); }

 private:
  std::vector<std::string_view> markers_;
  std::string held_;
};

}  // namespace deltafin::text
