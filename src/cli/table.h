// What reports for people are made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace deltafin::cli {

// Lines of "name    value", with a blank line between blocks.
class Table {
 public:
  void line(std::string_view name, const std::string& value);
  void bytes(std::string_view name, uint64_t count);
  void block() { text_ += "\n"; }
  void raw(const std::string& text) { text_ += text + "\n"; }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace deltafin::cli
