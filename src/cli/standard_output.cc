#include "cli/standard_output.h"

#include <fmt/format.h>

#include <cerrno>

#include "cli/output_file.h"

namespace deltafin::cli {

void StandardOutput::write(std::string_view text) {
  if (text.empty() || !is_open()) return;
  error_number_ = write_all(descriptor_, text);
  last_ = text.back();
}

void StandardOutput::finish_line() {
  if (last_ != '\n') write("\n");
}

bool StandardOutput::reader_is_gone() const { return error_number_ == EPIPE; }

Status StandardOutput::status() const {
  if (is_open() || reader_is_gone()) return {};
  return fail(ErrorCode::Io,
              fmt::format("standard output: cannot write: {}", system_error(error_number_)));
}

}  // namespace deltafin::cli
