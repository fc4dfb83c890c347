// How the next token is chosen: flags over generation_config.json over greedy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/command_line.h"
#include "cli/generation_defaults.h"
#include "engine/sampler.h"

namespace deltafin::cli {

struct SamplingFlags {
  bool sample = false;
  std::optional<float> temperature, top_p, min_p;
  std::optional<uint64_t> top_k;
  std::optional<float> repetition_penalty, presence_penalty, frequency_penalty;
  std::optional<uint64_t> seed;

  // The flags must outlive the command line's parse().
  void declare(CommandLine& line);
};

// Sampling is on with --sample or any flag that only makes sense with it; a temperature of 0 is
// greedy whatever else is said. What no flag says comes from `defaults` when sampling, else it is
// neutral. `drawn_seed` is used without --seed. Errors: Usage, for a value that cannot be.
Result<engine::SamplingParameters> combine(const SamplingFlags& flags,
                                           const GenerationDefaults& defaults, uint64_t drawn_seed);

// A seed that differs from run to run, short enough to type.
uint64_t draw_seed();

// A line that says which seed was drawn; empty where none was, or it does not matter.
std::string seed_note(const SamplingFlags& flags, const engine::SamplingParameters& parameters);

// "greedy", or "temperature 0.6, top-p 0.95, seed 7": what is not neutral.
std::string describe(const engine::SamplingParameters& parameters);

}  // namespace deltafin::cli
