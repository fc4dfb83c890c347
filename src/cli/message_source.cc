#include "cli/message_source.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/limits.h"
#include "cli/chat_input.h"
#include "io/published_file.h"

namespace deltafin::cli {

namespace {

class LineSource final : public MessageSource {
 public:
  LineSource(int descriptor, const CancelToken& cancel)
      : descriptor_(descriptor), cancel_(cancel) {}

  Result<Reading> next() override {
    for (;;) {
      if (const std::optional<std::string> line = take_line()) {
        if (lines_.add(*line)) return Reading{Kind::Message, lines_.take()};
        continue;
      }
      if (has_ended_) return last();
      if (cancel_.cancelled()) return Reading{Kind::Interrupted};
      TRY_STATUS(read_more());
    }
  }

  bool is_terminal() const override { return false; }

 private:
  std::optional<std::string> take_line() {
    const size_t end = pending_.find('\n', searched_);
    if (end == std::string::npos) {
      searched_ = pending_.size();
      return std::nullopt;
    }
    std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    searched_ = 0;
    return line;
  }

  // A last line without a break, or one that ended in a backslash.
  Reading last() {
    if (pending_.empty() && !lines_.is_open()) return Reading{Kind::End};
    lines_.add(pending_);
    pending_.clear();
    return Reading{Kind::Message, lines_.take()};
  }

  Status read_more() {
    std::array<char, 1 << 16> buffer;
    const ssize_t got = ::read(descriptor_, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) return {};
    if (got < 0)
      return fail(ErrorCode::Io,
                  fmt::format("cannot read standard input: {}", io::system_error(errno)));
    has_ended_ = got == 0;
    pending_.append(buffer.data(), static_cast<size_t>(got));
    if (pending_.size() <= limits::kPromptBytes + buffer.size()) return {};
    return fail(ErrorCode::Usage,
                fmt::format("standard input has a line of more than the {} bytes that a message "
                            "may have",
                            limits::kPromptBytes));
  }

  int descriptor_;
  const CancelToken& cancel_;
  ChatLines lines_;
  std::string pending_;
  size_t searched_ = 0;  // so much of it has no line break
  bool has_ended_ = false;
};

}  // namespace

std::unique_ptr<MessageSource> open_line_source(int descriptor, const CancelToken& cancel) {
  return std::make_unique<LineSource>(descriptor, cancel);
}

std::string chat_history_file() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::filesystem::path(value != nullptr ? value : "");
  };
  std::filesystem::path folder = variable("XDG_STATE_HOME");
  // The specification says that a relative one does not count.
  if (!folder.is_absolute()) {
    folder = variable("HOME");
    if (!folder.is_absolute()) return "";
    folder /= ".local/state";
  }
  folder /= "deltafin";
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return failed ? "" : (folder / "history").string();
}

}  // namespace deltafin::cli
