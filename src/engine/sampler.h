// Logits to one token: greedy, or seeded sampling that gives the same token on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "numerics/kernels.h"

namespace deltafin::engine {

// The token is a pure function of (logits, these parameters, position, history).
struct SamplingParameters {
  float temperature = 0;         // 0: greedy, everything but penalties and bias is ignored
  uint32_t top_k = 0;            // 0: all
  float top_p = 1;               // keep the most probable until their sum reaches this
  float min_p = 0;               // drop candidates below this share of the best one's probability
  float repetition_penalty = 1;  // divides positive, multiplies negative logits of seen tokens
  float presence_penalty = 0;    // subtracted once from the logit of a seen token
  float frequency_penalty = 0;   // subtracted per occurrence
  std::vector<std::pair<TokenId, float>> logit_bias = {};
  uint64_t seed = 0;
  uint32_t choice = 0;  // index among several answers to one prompt
};

// Errors: Usage, naming the parameter, what was found and what is possible.
Status validate(const SamplingParameters& parameters, size_t vocab_size);

class Sampler {
 public:
  // `parameters` have been validated.
  Sampler(const numerics::Kernels& kernels, SamplingParameters parameters)
      : kernels_(kernels), parameters_(std::move(parameters)) {}

  // The token at absolute position `position`, given the logits of the row before it and all tokens
  // before it. Logits are finite.
  TokenId choose(std::span<const float> logits, uint64_t position,
                 std::span<const TokenId> history);

 private:
  void adjust(std::span<const TokenId> history);
  size_t cut_candidates();

  const numerics::Kernels& kernels_;
  SamplingParameters parameters_;
  std::vector<float> logits_, probabilities_;
  std::vector<TokenId> order_;
};

// The highest logit; equal ones (as floats): the lower id.
TokenId argmax(std::span<const float> logits);

// log softmax(logits)[token] = x - max - log(sum exp(x - max)), for reporting: of each of `tokens`.
std::vector<float> log_probabilities(const numerics::Kernels& kernels,
                                     std::span<const float> logits,
                                     std::span<const TokenId> tokens);

// The `count` tokens with the highest logits, the highest first; equal ones: the lower id first.
std::vector<TokenId> most_probable(std::span<const float> logits, size_t count);

}  // namespace deltafin::engine
