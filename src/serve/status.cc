#include "serve/status.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "serve/api/json_text.h"

namespace deltafin::serve {

namespace {

using nlohmann::ordered_json;

// Families in the order in which they are added.
class MetricList {
 public:
  void counter(const char* name, const char* help, double value) {
    prometheus::ClientMetric metric;
    metric.counter.value = value;
    add(name, help, prometheus::MetricType::Counter, std::move(metric));
  }
  void gauge(const char* name, const char* help, double value) {
    prometheus::ClientMetric metric;
    metric.gauge.value = value;
    add(name, help, prometheus::MetricType::Gauge, std::move(metric));
  }
  std::string text() const { return prometheus::TextSerializer().Serialize(families_); }

 private:
  void add(const char* name, const char* help, prometheus::MetricType type,
           prometheus::ClientMetric metric) {
    prometheus::MetricFamily family;
    family.name = name;
    family.help = help;
    family.type = type;
    family.metric.push_back(std::move(metric));
    families_.push_back(std::move(family));
  }

  std::vector<prometheus::MetricFamily> families_;
};

double number(uint64_t value) { return static_cast<double>(value); }

uint64_t bytes_read(const engine::EngineCounters& counters) {
  return counters.experts.bytes_read + counters.experts.hint_bytes +
         counters.trunk.stream.bytes_read;
}

// Of distinct experts in each layer of each pass: what all rows of a pass need is used once.
uint64_t expert_bytes_used(const ServerLook& look) {
  return look.engine.engine.experts.experts_used * look.model.expert_bytes;
}

}  // namespace

std::string status_json(const ServerLook& look) {
  const ServedModel& model = look.model;
  const EngineStatus& status = look.engine;
  const engine::EngineCounters& counters = status.engine;
  ordered_json layers = ordered_json::array();
  for (const memory::LayerExpertCounters& layer : counters.experts.layers)
    layers.push_back(
        {{"hits", layer.hits}, {"misses", layer.misses}, {"bytes_read", layer.bytes_read}});
  const auto if_any = [](bool is_any, ordered_json value) {
    return is_any ? std::move(value) : ordered_json();
  };
  const bool works = status.activity != Activity::Idle;
  const bool is_open = status.state != ServerState::Loading;
  const ordered_json json = {
      {"version", model.version},
      {"uptime_seconds", seconds(look.uptime)},
      {"state", name_of(status.state)},
      {"reason", if_any(!status.last_failure.empty(), status.last_failure)},
      {"loading", if_any(!is_open, {{"fraction", status.loading_fraction}})},
      {"model", if_any(is_open, {{"id", model.id},
                                 {"architecture", model.architecture},
                                 {"layers", model.layers},
                                 {"parameters_bytes", model.parameters_bytes},
                                 {"trunk_bytes", model.trunk_bytes},
                                 {"trunk_bytes_of_pass", model.trunk_bytes_of_pass}})},
      {"activity",
       {{"kind", name_of(status.activity)},
        {"layer", if_any(works, status.position.layer)},
        {"layers", if_any(works, model.layers)},
        {"rows", if_any(works, status.position.rows)}}},
      {"layers", std::move(layers)},
      {"experts",
       {{"used", counters.experts.experts_used},
        {"bytes_used", expert_bytes_used(look)},
        {"rows", counters.experts.edges}}},
      {"disk",
       {{"bytes_read", bytes_read(counters)},
        {"probe_bytes_per_second",
         if_any(look.disk_bytes_per_second.has_value(), look.disk_bytes_per_second.value_or(0))}}},
      {"memory",
       {{"budget_bytes", model.budget_bytes},
        {"resident_bytes", look.resident_bytes},
        {"parts",
         {{"trunk", counters.trunk.resident_bytes + model.trunk_buffer_bytes},
          {"experts", counters.experts.cache_bytes},
          {"state", model.state_bytes},
          {"activations", model.activation_bytes}}}}},
      {"tokens",
       {{"prompt", status.scheduler.prompt_tokens},
        {"cached", status.scheduler.cached_tokens},
        {"generated", status.scheduler.generated_tokens}}},
      {"requests",
       {{"running", status.scheduler.running},
        {"queued", status.scheduler.waiting},
        {"failed", status.failed_requests},
        {"limit", look.request_limit}}},
      {"kept_answers", {{"bytes", look.kept_answer_bytes}}},
      {"prefix_cache",
       {{"states", status.scheduler.kept_states}, {"bytes", status.scheduler.kept_state_bytes}}},
      {"passes", counters.passes}};
  return json_text(json);
}

std::string metrics_text(const ServerLook& look) {
  const EngineStatus& status = look.engine;
  const engine::SchedulerCounters& scheduler = status.scheduler;
  const memory::ExpertCounters& experts = status.engine.experts;
  MetricList list;
  list.gauge("deltafin_ready", "1 when requests are served",
             status.state == ServerState::Ready || status.state == ServerState::Degraded ? 1 : 0);
  list.gauge("deltafin_uptime_seconds", "since the server listens", seconds(look.uptime));
  list.gauge("deltafin_requests_running", "requests in the engine", number(scheduler.running));
  list.gauge("deltafin_requests_queued", "requests that wait", number(scheduler.waiting));
  list.counter("deltafin_requests_failed_total", "requests that failed by our fault",
               number(status.failed_requests));
  list.counter("deltafin_prompt_tokens_total", "tokens of prompts, those of cached states too",
               number(scheduler.prompt_tokens));
  list.counter("deltafin_cached_tokens_total", "tokens of prompts whose state was kept",
               number(scheduler.cached_tokens));
  list.counter("deltafin_generated_tokens_total", "tokens of answers",
               number(scheduler.generated_tokens));
  list.counter("deltafin_passes_total", "completed passes through the layers",
               number(status.engine.passes));
  list.counter("deltafin_expert_hits_total", "experts that were in memory when needed",
               number(experts.hits));
  list.counter("deltafin_expert_misses_total", "experts that were read when needed",
               number(experts.misses));
  list.counter("deltafin_expert_bytes_used_total",
               "bytes of experts that passes went through, each once a layer",
               number(expert_bytes_used(look)));
  list.gauge("deltafin_trunk_bytes_of_pass", "bytes of other weights that a pass goes through",
             number(look.model.trunk_bytes_of_pass));
  list.counter("deltafin_bytes_read_total", "bytes of weights read after loading",
               number(bytes_read(status.engine)));
  list.counter("deltafin_hint_wasted_bytes_total", "of those, read ahead in vain",
               number(experts.wasted_bytes));
  list.gauge("deltafin_memory_budget_bytes", "the ceiling", number(look.model.budget_bytes));
  list.gauge("deltafin_memory_resident_bytes", "of this process", number(look.resident_bytes));
  list.gauge("deltafin_kept_state_bytes", "states kept for later prompts",
             number(scheduler.kept_state_bytes));
  list.gauge("deltafin_kept_answer_bytes", "finished answers kept for clients that come back",
             number(look.kept_answer_bytes));
  list.gauge("deltafin_connections", "open now", number(look.http.connections_now));
  list.counter("deltafin_http_requests_total", "requests of all routes",
               number(look.http.requests));
  list.counter("deltafin_http_refused_total", "connections and requests that were turned away",
               number(look.http.refused));
  return list.text();
}

}  // namespace deltafin::serve
