#include "cli/sampling.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>

#include "base/limits.h"

namespace deltafin::cli {

using engine::SamplingParameters;

namespace {

bool wants_sampling(const SamplingFlags& flags) {
  return flags.sample || flags.temperature || flags.top_p || flags.min_p || flags.top_k;
}

// "top_p is 2; ..." as "--top-p is 2; ...": the values of the model have been checked before, so it
// is a flag's that is wrong.
std::string with_flag_name(std::string message) {
  const size_t end = std::min(message.find(' '), message.size());
  std::replace(message.begin(), message.begin() + static_cast<ptrdiff_t>(end), '_', '-');
  return "--" + message;
}

}  // namespace

void SamplingFlags::declare(CommandLine& line) {
  line.group("choice of tokens (default: greedy, the most likely token)");
  line.toggle("--sample",
              "draw tokens at random, with the parameters of the model's generation_config.json "
              "(temperature 1 where it has none)",
              sample);
  line.flag("--temperature", "T", "sample with this temperature; 0 is greedy",
            real_into(temperature));
  line.flag("--top-k", "N", "sample among the N most likely tokens; 0: all",
            integer_into(top_k, 0, limits::kVocabulary));
  line.flag("--top-p", "P", "sample among the most likely tokens that together reach P",
            real_into(top_p));
  line.flag("--min-p", "P", "drop tokens less likely than P times the most likely one",
            real_into(min_p));
  line.flag(
      "--repetition-penalty", "X",
      "divide positive logits of tokens seen so far by X, multiply negative ones; 1: none. The "
      "penalties work with greedy choice too",
      real_into(repetition_penalty));
  line.flag("--presence-penalty", "X", "subtract X from the logits of tokens seen so far",
            real_into(presence_penalty));
  line.flag("--frequency-penalty", "X", "subtract X for every time the token was seen",
            real_into(frequency_penalty));
  line.flag("--seed", "N",
            "the same seed draws the same tokens, on every machine (default: new each run)",
            integer_into(seed, 0, UINT64_MAX));
}

Result<SamplingParameters> combine(const SamplingFlags& flags, const GenerationDefaults& defaults,
                                   uint64_t drawn_seed) {
  SamplingParameters parameters;
  if (wants_sampling(flags)) {
    parameters.temperature = flags.temperature.value_or(defaults.temperature.value_or(1.0f));
    parameters.top_p = flags.top_p.value_or(defaults.top_p.value_or(1.0f));
    parameters.min_p = flags.min_p.value_or(defaults.min_p.value_or(0.0f));
    parameters.top_k = static_cast<uint32_t>(flags.top_k.value_or(defaults.top_k.value_or(0)));
    parameters.repetition_penalty = defaults.repetition_penalty.value_or(1.0f);
  }
  parameters.repetition_penalty = flags.repetition_penalty.value_or(parameters.repetition_penalty);
  parameters.presence_penalty = flags.presence_penalty.value_or(0.0f);
  parameters.frequency_penalty = flags.frequency_penalty.value_or(0.0f);
  parameters.seed = flags.seed.value_or(drawn_seed);
  // Only logit biases, which have no flag, depend on the size of the vocabulary.
  const Status valid = engine::validate(parameters, 0);
  if (!valid) return fail(ErrorCode::Usage, with_flag_name(valid.error().what));
  return parameters;
}

uint64_t draw_seed() {
  uint32_t seed = 0;
  // Cannot fail for so few bytes; if it did, 0 would be as good a seed as any.
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed) return 0;
  return seed;
}

std::string describe(const SamplingParameters& p) {
  std::string text;
  const auto add = [&](bool shown, const std::string& part) {
    if (shown) text += (text.empty() ? "" : ", ") + part;
  };
  const bool sampled = p.temperature > 0;
  add(!sampled, "greedy");
  add(sampled, fmt::format("temperature {}", p.temperature));
  add(sampled && p.top_k != 0, fmt::format("top-k {}", p.top_k));
  add(sampled && p.top_p != 1, fmt::format("top-p {}", p.top_p));
  add(sampled && p.min_p != 0, fmt::format("min-p {}", p.min_p));
  add(p.repetition_penalty != 1, fmt::format("repetition penalty {}", p.repetition_penalty));
  add(p.presence_penalty != 0, fmt::format("presence penalty {}", p.presence_penalty));
  add(p.frequency_penalty != 0, fmt::format("frequency penalty {}", p.frequency_penalty));
  add(sampled, fmt::format("seed {}", p.seed));
  return text;
}

std::string seed_note(const SamplingFlags& flags, const engine::SamplingParameters& parameters) {
  if (parameters.temperature <= 0 || flags.seed) return "";
  return fmt::format("seed {} (the same text again: --seed {})\n", parameters.seed,
                     parameters.seed);
}

}  // namespace deltafin::cli
