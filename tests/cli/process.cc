#include "cli/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

namespace deltafin::test {

namespace fs = std::filesystem;

namespace {

using Deadline = std::chrono::steady_clock::time_point;

Deadline deadline_in(std::chrono::minutes time) { return std::chrono::steady_clock::now() + time; }
Deadline in_a_minute() { return deadline_in(std::chrono::minutes(1)); }
bool is_over(Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
    read = ends[0];
    write = ends[1];
  }
};

void limit_resource(int resource, long limit) {
  if (limit < 0) return;
  const rlimit limits = {.rlim_cur = static_cast<rlim_t>(limit),
                         .rlim_max = static_cast<rlim_t>(limit)};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limits);
}

// Moves this process, whose memory is then that of the program alone.
void enter_group(const std::string& entrance) {
  if (entrance.empty()) return;
  const int file = ::open(entrance.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0 || ::write(file, "0", 1) != 1) ::_exit(125);
}

// In the child, between fork and exec; only async-signal-safe calls are of any use here.
[[noreturn]] void become_program(const Invocation& invocation, int input, int output, int error) {
  ::dup2(input, STDIN_FILENO);
  if (invocation.output == Output::Closed) {
    ::close(STDOUT_FILENO);
  } else {
    ::dup2(output, STDOUT_FILENO);
  }
  ::dup2(error, STDERR_FILENO);
  // As a shell starts it, whatever we or whoever runs the tests ignore.
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
  if (!invocation.folder.empty() && ::chdir(invocation.folder.c_str()) != 0) ::_exit(126);
  for (const std::string& variable : invocation.environment)
    ::putenv(const_cast<char*>(variable.c_str()));
  limit_resource(RLIMIT_FSIZE, invocation.file_bytes_limit);
  limit_resource(RLIMIT_AS, invocation.memory_bytes_limit);
  enter_group(invocation.group_entrance);
  std::vector<char*> arguments = {const_cast<char*>("deltafin")};
  for (const std::string& argument : invocation.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execv(DELTAFIN_PROGRAM, arguments.data());
  ::_exit(127);
}

void write_input(int descriptor, const std::string& text) {
  const char* at = text.data();
  for (size_t left = text.size(); left > 0;) {
    const ssize_t written = ::write(descriptor, at, left);
    if (written < 0) break;  // it does not read its input
    at += written;
    left -= static_cast<size_t>(written);
  }
  ::close(descriptor);
}

}  // namespace

Process::Process(const Invocation& invocation) : time_limit_(invocation.minutes_at_most) {
  ::signal(SIGPIPE, SIG_IGN);
  const Pipe input, output, error;
  int output_end = output.write;
  if (!invocation.output_path.empty())
    output_end = ::open(invocation.output_path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  EXPECT_GE(output_end, 0);
  if (invocation.output == Output::Unread) ::close(output.read);
  pid_ = ::fork();
  if (pid_ == 0) become_program(invocation, input.read, output_end, error.write);
  ::close(input.read);
  ::close(output.write);
  ::close(error.write);
  if (output_end != output.write) ::close(output_end);
  if (invocation.output != Output::Unread) out_ = output.read;
  err_ = error.read;
  write_input(input.write, invocation.input);
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

void Process::signal(int number) const { ::kill(pid_, number); }

// False when both streams have ended.
bool Process::read_some(int timeout_ms) {
  std::array<pollfd, 2> streams = {pollfd{.fd = out_, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = err_, .events = POLLIN, .revents = 0}};
  ::poll(streams.data(), streams.size(), timeout_ms);
  std::array<char, 65536> buffer{};
  const auto take = [&](const pollfd& stream, int& descriptor, std::string& into) {
    if (descriptor < 0 || stream.revents == 0) return;
    const ssize_t got = ::read(descriptor, buffer.data(), buffer.size());
    if (got > 0) {
      into.append(buffer.data(), static_cast<size_t>(got));
    } else {
      ::close(descriptor);
      descriptor = -1;
    }
  };
  take(streams[0], out_, outcome_.out);
  take(streams[1], err_, outcome_.err);
  return out_ >= 0 || err_ >= 0;
}

bool Process::wait_for_output(const std::string& text) {
  const Deadline deadline = in_a_minute();
  while (outcome_.out.find(text) == std::string::npos) {
    if (!read_some(100) || is_over(deadline)) return false;
  }
  return true;
}

bool Process::wait_for_file(const fs::path& file, const std::string& text) {
  const Deadline deadline = in_a_minute();
  while (!fs::exists(file) || read_file(file.string()).find(text) == std::string::npos) {
    siginfo_t ended = {};
    ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (is_over(deadline) || ended.si_pid != 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool Process::wait_until_it_waits() const {
  constexpr const char* kCaught = "SigCgt:";
  for (const Deadline deadline = in_a_minute(); !is_over(deadline);) {
    const std::string status = read_file("/proc/" + std::to_string(pid_) + "/status");
    const size_t at = status.find(kCaught);
    if (at == std::string::npos) return false;
    const uint64_t caught = std::stoull(status.substr(at + std::strlen(kCaught)), nullptr, 16);
    const bool has_handler = (caught >> (SIGINT - 1) & 1) != 0;
    if (has_handler && status.find("State:\tS") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

Outcome Process::finish() {
  const Deadline deadline = deadline_in(time_limit_);
  while (read_some(100)) {
    if (!is_over(deadline)) continue;
    ADD_FAILURE() << "the program does not end; so far it said:\n" << outcome_.out << outcome_.err;
    ::kill(pid_, SIGKILL);
    break;
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  outcome_.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return outcome_;
}

Outcome run_with(const Invocation& invocation) { return Process(invocation).finish(); }

// ------------------------------------------------------------------------------- ScratchFolder ---

ScratchFolder::ScratchFolder() {
  std::string name = (fs::temp_directory_path() / "deltafin-e2e-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string ScratchFolder::copy_of(const std::string& checkpoint) const {
  const fs::path copy = path_ / fs::path(checkpoint).filename();
  fs::copy(in_repository(checkpoint), copy);
  return copy.string();
}

size_t ScratchFolder::file_count() const {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string in_repository(const std::string& path) {
  return std::string(DELTAFIN_SOURCE_DIR) + "/" + path;
}

}  // namespace deltafin::test
