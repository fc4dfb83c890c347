#include "engine/prefill_pass.h"

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"

namespace deltafin::engine {

Result<std::unique_ptr<PrefillPass>> PrefillPass::begin(Engine& engine, std::vector<Part> parts) {
  std::vector<PassRequest> requests;
  for (const Part& part : parts)
    requests.push_back({.sequence = &part.job->prompt(),
                        .tokens = part.job->unread_stretch().first(part.row_count),
                        .mode = PassMode::Prefill,
                        .logits = LogitsOf::LastRow});
  TRY(Pass pass, Pass::begin(engine, requests));
  return std::unique_ptr<PrefillPass>(new PrefillPass(engine, std::move(parts), std::move(pass)));
}

bool PrefillPass::is_needed() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return !part.job->has_ended(); });
}

bool PrefillPass::has(const Job& job) const {
  return std::ranges::any_of(parts_, [&](const Part& part) { return part.job.get() == &job; });
}

Status PrefillPass::advance() {
  CHECK(!finished_);
  if (!pass_.layers_finished()) {
    TRY_STATUS(pass_.advance_layer(cancel_));
    for (const Part& part : parts_)
      if (!part.job->has_ended())
        part.job->report_layer(part.row_count, pass_.layers_done(), engine_.layer_count());
    return {};
  }
  for (size_t i = 0; i < parts_.size(); ++i)
    if (is_to_be_scored(parts_[i])) return score_some(i);
  TRY_STATUS(pass_.finish(cancel_));
  finished_ = true;
  return {};
}

bool PrefillPass::is_to_be_scored(const Part& part) const {
  return !part.job->has_ended() && part.job->request().prompt_logits &&
         part.job->scored_rows() < part.row_count;
}

Status PrefillPass::score_some(size_t i) {
  Job& job = *parts_[i].job;
  const size_t first = job.scored_rows();
  const model::OwnedRows logits(std::min(limits::kScoredRows, parts_[i].row_count - first),
                                engine_.vocab_size());
  const model::Rows rows = logits.view();
  TRY_STATUS(pass_.compute_logits(i, first, rows, cancel_));
  for (size_t row = 0; row < rows.count; ++row) job.score({rows.row(row), rows.width});
  return {};
}

bool PrefillPass::commit(size_t i) {
  CHECK(finished_);
  const Part& part = parts_[i];
  const bool wanted = !part.job->has_ended();
  pass_.commit(i, wanted ? part.row_count : 0);
  if (wanted) part.job->rows_were_read(part.row_count, pass_.logits(i, part.row_count - 1));
  return wanted;
}

}  // namespace deltafin::engine
