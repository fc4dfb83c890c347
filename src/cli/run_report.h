// What a run did, for people (--stats) and for programs (--json, run_end).
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/token.h"
#include "cli/memory_planning.h"
#include "cli/saved_state.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "engine/sampler.h"
#include "io/reader.h"
#include "text/chat/channels.h"

namespace deltafin::cli {

struct LogitsDigestLine {
  std::string sha256;
  uint64_t row_count = 0;
};

// What a chat has beside its answer, which is the text.
struct ChatReport {
  std::string template_name;
  std::string reasoning;
  std::vector<text::ParsedCall> calls;
};

struct RunReport {
  std::string directory, architecture;
  std::vector<TokenId> prompt_ids;
  uint64_t prefill_count = 0;  // these, and what waited in the loaded state
  std::optional<StateReport> loaded, saved;
  std::optional<std::string> text;    // empty without a tokenizer
  std::optional<ChatReport> chat;     // empty without --chat
  std::optional<TokenId> stop_token;  // that ended the text
  engine::GenerationResult result;
  engine::SamplingParameters sampling;

  std::chrono::nanoseconds load_time{0};
  // The counters when the first token was chosen; empty when none was.
  std::optional<engine::EngineCounters> after_prefill;
  engine::EngineCounters at_end;
  io::ReaderCounters reads;
  std::optional<double> disk_roof;  // bytes a second that the disk was measured to read

  std::string reader, isa;
  std::string why_not_uring;  // where that would have been the first choice
  size_t thread_count = 0;
  uint64_t position_count = 0;  // committed
  uint64_t state_fixed_bytes = 0, state_bytes_per_position = 0;

  std::optional<PlannedMemory> memory;          // empty where nobody knows the memory
  std::optional<uint64_t> peak_resident_bytes;  // of the process

  std::optional<LogitsDigestLine> digest;

  uint64_t state_bytes() const {
    return state_fixed_bytes + position_count * state_bytes_per_position;
  }
};

// "logits sha256 <hex> over N rows"
std::string describe(const LogitsDigestLine& digest);

// The budget and what was planned with it; null without a plan.
nlohmann::ordered_json memory_json(const std::optional<PlannedMemory>& memory);

// Several aligned lines.
std::string summary(const RunReport& report);

nlohmann::ordered_json to_json(const RunReport& report);
// The same without what run_start said.
nlohmann::ordered_json run_end_event(const RunReport& report, std::chrono::nanoseconds elapsed);

}  // namespace deltafin::cli
