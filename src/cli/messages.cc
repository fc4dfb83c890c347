#include "cli/messages.h"

#include <fmt/format.h>

#include "cli/progress.h"
#include "cli/standard_output.h"

namespace deltafin::cli {

const char* version() { return DELTAFIN_VERSION; }

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

Result<int> print(std::string_view text) {
  StandardOutput output;
  output.write(text);
  TRY_STATUS(output.status());
  return 0;
}

void warn(const std::string& text) {
  write_to_standard_error(fmt::format("deltafin: warning: {}\n", text));
}

std::string error_text(const Error& error, const std::string& command, const char* stop_signal) {
  if (error.code == ErrorCode::Cancelled && stop_signal != nullptr)
    return fmt::format("deltafin: stopped by {}\n", stop_signal);
  std::string text = fmt::format("deltafin: {}\n", error.what);
  if (error.code != ErrorCode::Usage)
    return text + fmt::format("exit {} ({})\n", exit_code(error.code), describe(error.code));
  if (error.what.find('\n') == std::string::npos)
    text += fmt::format("  see: deltafin {}{}--help\n", command, command.empty() ? "" : " ");
  return text;
}

}  // namespace deltafin::cli
