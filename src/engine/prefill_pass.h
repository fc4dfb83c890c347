// A pass over the prompts of several jobs, in steps that others can overtake.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/cancel.h"
#include "engine/engine.h"
#include "engine/pass.h"
#include "engine/scheduled_job.h"

namespace deltafin::engine {

class PrefillPass {
 public:
  struct Part {
    std::shared_ptr<Job> job;
    size_t row_count = 0;  // the first so many of its unread stretch
  };

  // Errors: those of Pass::begin.
  static Result<std::unique_ptr<PrefillPass>> begin(Engine& engine, std::vector<Part> parts);

  const std::vector<Part>& parts() const { return parts_; }
  // Set when nobody needs the pass any more.
  CancelToken& cancel() { return cancel_; }
  bool is_needed() const;
  bool has(const Job& job) const;

  // A layer, or the logits of some rows of a prompt that is scored, or the end. Jobs that have
  // ended meanwhile hear nothing. Errors: those of Pass; it can then only be dropped.
  Status advance();
  bool is_finished() const { return finished_; }
  // After the end: whether part `i` became part of its prompt, whose job has not ended.
  bool commit(size_t i);

 private:
  PrefillPass(Engine& engine, std::vector<Part> parts, Pass pass)
      : engine_(engine), parts_(std::move(parts)), pass_(std::move(pass)) {}
  // Whether a row of this part is still to be scored.
  bool is_to_be_scored(const Part& part) const;
  Status score_some(size_t i);

  Engine& engine_;
  std::vector<Part> parts_;
  Pass pass_;  // dropped before the jobs, whose sequences it is open on
  CancelToken cancel_;
  bool finished_ = false;
};

}  // namespace deltafin::engine
