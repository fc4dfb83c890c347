#include "cli/serve_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "cli/memory_planning.h"
#include "cli/model_location.h"
#include "io/file.h"

namespace deltafin::cli {

namespace {

constexpr uint64_t kKeyFileBytes = 4096;

// "a,b" -> {"a", "b"}
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> words;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (comma > 0) words.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return words;
}

Result<std::string> read_key(const std::string& path) {
  const io::PosixStorage storage;
  Result<std::string> text = io::read_text(storage, path, kKeyFileBytes);
  if (!text) return std::unexpected(std::move(text).error().within("--api-key-file"));
  std::string key = *std::move(text);
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r' || key.back() == ' '))
    key.pop_back();
  if (key.empty() || key.find_first_of("\r\n") != std::string::npos)
    return fail(ErrorCode::Usage,
                fmt::format("--api-key-file: {}: expected one line, the key", path));
  return key;
}

}  // namespace

void ServeFlags::declare(CommandLine& line) {
  declare_model(line, model);
  line.group("network");
  line.flag("--host", "ADDRESS", "where to listen (default: 127.0.0.1, this machine alone)",
            text_into(host));
  line.flag("--port", "N", "the port; 0: any free one (default: 8000)",
            integer_into(port, 0, 65535));
  line.flag("--api-key-file", "FILE",
            "its one line is the key that requests must have; needed to listen beyond this machine",
            text_into(api_key_file));
  line.flag("--cors", "ORIGIN",
            "web pages of these origins may ask too, such as https://chat.example.org; several "
            "with commas, * for all",
            text_into(cors));
  line.flag("--allow-host", "NAME",
            "a name besides the address and localhost by which clients call this server; several "
            "with commas",
            text_into(allow_host));
  line.toggle("--insecure", "listen beyond this machine without a key", insecure);
  line.group("requests");
  line.flag("--requests", "N",
            fmt::format("answers that are computed at a time (default: {})", kRequests),
            integer_into(requests, 1, limits::kRequests));
  line.flag(
      "--queue", "N",
      fmt::format("requests that may wait; more are told to come again (default: {})", kQueue),
      integer_into(queue, 0, limits::kRequests));
  line.flag("--context", "N",
            fmt::format("tokens of a prompt and its answer at most, for which memory is planned "
                        "(default: {}, or what the model can)",
                        kDefaultContext),
            integer_into(context, 2, limits::kPositions));
  line.flag("--state-dir", "DIR",
            "keeps finished answers, and the states of prompts, so that what was read once is not "
            "read again after a restart either; the folder is made where it is missing",
            text_into(state_directory));
  line.flag("--state-bytes", "SIZE",
            "what states may take in --state-dir; those used longest ago go first (default: 8GB)",
            size_into(state_bytes));
  line.flag("--drain", "SECONDS",
            fmt::format("how long running requests may go on after Ctrl-C or SIGTERM (default: {})",
                        kDrainSeconds),
            integer_into(drain_seconds, 0, 86400));
  line.flag("--model-name", "NAME", "what requests call the model (default: its folder's name)",
            text_into(model_name));
  line.group("chat");
  chat.declare_for_server(line);
  engine.declare(line);
  line.example("deltafin serve demo",
               "the bundled model; http://127.0.0.1:8000/ is a page to try it");
  line.example("deltafin serve ~/models/kimi-k3 --requests 8 --context 32768 --state-dir ~/answers",
               "a model for several agents, whose answers survive a restart");
}

Result<serve::HttpOptions> ServeFlags::http_options() const {
  serve::HttpOptions options;
  options.host = host.value_or(options.host);
  options.port = static_cast<uint16_t>(port.value_or(options.port));
  if (api_key_file) {
    TRY(options.api_key, read_key(*api_key_file));
  }
  options.allowed_origins = split(cors.value_or(""));
  options.allowed_hosts = split(allow_host.value_or(""));
  return options;
}

std::optional<std::string> ServeFlags::answers_directory() const {
  if (!state_directory) return std::nullopt;
  return io::join_path(*state_directory, "answers");
}

std::string ServeFlags::states_directory() const {
  return io::join_path(state_directory.value_or("."), "states");
}

Status ServeFlags::prepare_state_directory() const {
  if (!state_directory) return {};
  std::error_code error;
  std::filesystem::create_directories(*answers_directory(), error);
  if (!error && ::access(answers_directory()->c_str(), W_OK | X_OK) == 0) return {};
  return fail(ErrorCode::Io,
              fmt::format("--state-dir: {}: cannot be written to{}\n  name a folder that this user "
                          "may write to",
                          *state_directory, error ? ": " + error.message() : ""));
}

}  // namespace deltafin::cli
