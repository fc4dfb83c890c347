// The flags of deltafin serve.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/chat_flags.h"
#include "cli/command_line.h"
#include "cli/model_loading.h"
#include "serve/http/http_server.h"

namespace deltafin::cli {

struct ServeFlags {
  static constexpr uint64_t kRequests = 4, kQueue = 32, kDrainSeconds = 30;
  // States of so many whole contexts are kept for later prompts.
  static constexpr uint64_t kKeptSequences = 2;
  static constexpr uint64_t kStateBytes = 8'000'000'000;

  std::optional<std::string> model, model_name;
  std::optional<std::string> host, api_key_file, cors, allow_host;
  std::optional<uint64_t> port, requests, queue, context, drain_seconds;
  std::optional<std::string> state_directory;
  std::optional<uint64_t> state_bytes;
  bool insecure = false;
  ChatFlags chat;
  EngineFlags engine;

  // The flags must outlive the command line's parse().
  void declare(CommandLine& line);
  // Reads the key. Errors: Usage, Io.
  Result<serve::HttpOptions> http_options() const;
  // Of --state-dir: a folder for answers, and one for states of prompts.
  std::optional<std::string> answers_directory() const;
  std::string states_directory() const;
  // Makes the folders where they are missing. Errors: Io, when they cannot be written to.
  Status prepare_state_directory() const;
};

}  // namespace deltafin::cli
