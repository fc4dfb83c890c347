// Runs the built program as its user does: arguments, pipes, signals, exit status.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace deltafin::test {

// A sanitizer needs memory that no plan knows of.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

enum class Output : unsigned char {
  Captured,
  Unread,  // a pipe whose reader is gone
  Closed,  // no descriptor at all
};

struct Invocation {
  std::vector<std::string> arguments;         // without the program's name
  std::string input = {};                     // on standard input
  Output output = Output::Captured;           // standard output
  std::string output_path = {};               // or this file
  std::string folder = {};                    // working directory
  std::vector<std::string> environment = {};  // "NAME=value", added to ours
  long file_bytes_limit = -1;                 // RLIMIT_FSIZE
  long memory_bytes_limit = -1;               // RLIMIT_AS
  std::string group_entrance = {};            // MemoryGroup::entrance()
  int minutes_at_most = 1;                    // until finish() kills it
};

struct Outcome {
  int exit_status = -1;  // minus the signal that killed it
  std::string out, err;
};

class Process {
 public:
  explicit Process(const Invocation& invocation);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return pid_; }
  void signal(int number) const;
  // Returns whether the file or the captured standard output contains `text` before a minute is
  // over.
  bool wait_for_output(const std::string& text);
  // What was captured of it so far.
  const std::string& output_so_far() const { return outcome_.out; }
  bool wait_for_file(const std::filesystem::path& file, const std::string& text);
  // Returns whether the program, with its signal handlers in place, sleeps before a minute is over.
  bool wait_until_it_waits() const;
  // Waits for the end; kills a program that takes longer than it may, and the test fails.
  Outcome finish();

 private:
  bool read_some(int timeout_ms);

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  std::chrono::minutes time_limit_;
  Outcome outcome_;
};

Outcome run_with(const Invocation& invocation);
inline Outcome run_program(std::vector<std::string> arguments) {
  return run_with({.arguments = std::move(arguments)});
}

// A folder that is gone after the test.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  // A copy of a checkpoint of the repository, such as "models/demo", to be damaged.
  std::string copy_of(const std::string& checkpoint) const;
  size_t file_count() const;

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);
std::vector<std::string> lines_of(const std::string& text);
// A path inside the repository.
std::string in_repository(const std::string& path);

}  // namespace deltafin::test
