// The events of a run as JSON lines, for a program that watches (docs/cli.md has the schema).
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/token.h"
#include "cli/output_file.h"
#include "engine/generate.h"

namespace deltafin::cli {

inline constexpr const char* kEventSchema = "deltafin.run_event.v1";

// JSON in one line. Bytes that are not UTF-8 (in a path, say) become U+FFFD.
std::string to_line(const nlohmann::ordered_json& json);
// JSON for people and pipes: indented.
std::string to_document(const nlohmann::ordered_json& json);

nlohmann::ordered_json prefill_progress_event(const engine::PrefillProgress& progress,
                                              std::chrono::nanoseconds elapsed);
nlohmann::ordered_json prefill_done_event(uint64_t token_count, std::chrono::nanoseconds elapsed);

// `text`: what has become readable with this token; empty without a tokenizer.
struct TokenEvent {
  uint64_t index = 0;  // among the generated tokens
  TokenId id = 0;
  std::optional<std::string> text;
  bool is_stop = false;  // ends the text and is not part of it
};
nlohmann::ordered_json to_json(const TokenEvent& token, std::chrono::nanoseconds elapsed);

nlohmann::ordered_json run_error_event(const Error& error);

// Writes one event a line, each at once. Without a file it does nothing. After a failed write it
// takes no more, and status() tells.
class EventLog {
 public:
  explicit EventLog(std::optional<GrowingFile> file, const char* schema = kEventSchema)
      : file_(std::move(file)), schema_(schema) {}

  bool is_wanted() const { return file_ && status_; }
  // The first one is given the schema.
  void write(const nlohmann::ordered_json& event);
  const Status& status() const { return status_; }

 private:
  std::optional<GrowingFile> file_;
  const char* schema_;
  Status status_;
  bool is_first_ = true;
};

}  // namespace deltafin::cli
