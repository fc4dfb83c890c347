#include "cli/events.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "serve/api/json_text.h"

namespace deltafin::cli {

using nlohmann::ordered_json;

namespace {

ordered_json event(const char* name, std::chrono::nanoseconds elapsed) {
  return {{"event", name}, {"elapsed_seconds", seconds(elapsed)}};
}

}  // namespace

std::string to_line(const ordered_json& json) { return serve::json_text(json) + "\n"; }

std::string to_document(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json prefill_progress_event(const engine::PrefillProgress& progress,
                                    std::chrono::nanoseconds elapsed) {
  ordered_json json = event("prefill_progress", elapsed);
  json["fraction"] = progress.fraction();
  json["tokens_done"] = progress.rows_done;
  json["tokens_in_pass"] = progress.rows_in_pass;
  json["tokens_total"] = progress.rows_total;
  json["layers_done"] = progress.layers_done;
  json["layer_count"] = progress.layer_count;
  return json;
}

ordered_json prefill_done_event(uint64_t token_count, std::chrono::nanoseconds elapsed) {
  ordered_json json = event("prefill_done", elapsed);
  json["tokens"] = token_count;
  return json;
}

ordered_json to_json(const TokenEvent& token, std::chrono::nanoseconds elapsed) {
  ordered_json json = event("token", elapsed);
  json["index"] = token.index;
  json["id"] = token.id;
  json["text"] = token.text ? ordered_json(*token.text) : ordered_json();
  json["stop"] = token.is_stop;
  return json;
}

ordered_json run_error_event(const Error& error) {
  return {{"event", "run_error"},
          {"kind", describe(error.code)},
          {"exit_code", exit_code(error.code)},
          {"message", error.what}};
}

void EventLog::write(const ordered_json& event) {
  if (!is_wanted()) return;
  if (!is_first_) {
    status_ = file_->append(to_line(event));
    return;
  }
  is_first_ = false;
  ordered_json first = {{"event", event.at("event")}, {"schema", schema_}};
  first.update(event);
  status_ = file_->append(to_line(first));
}

}  // namespace deltafin::cli
