#include "cli/table.h"

#include <fmt/format.h>

#include "cli/units.h"

namespace deltafin::cli {

void Table::line(std::string_view name, const std::string& value) {
  text_ += fmt::format("{:<20}{}\n", name, value);
}

void Table::bytes(std::string_view name, uint64_t count) {
  text_ +=
      fmt::format("{:<20}{:>12}  {:>21} bytes\n", name, human_bytes(count), with_separators(count));
}

}  // namespace deltafin::cli
