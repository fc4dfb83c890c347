#include "support/engine_fixture.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace deltafin::test {

void throw_error(const Error& error) { throw std::runtime_error(error.what); }

EngineFixture::EngineFixture(const std::string& directory, engine::EngineOptions options)
    : reader_(io::make_thread_reader({})) {
  const CancelToken never;
  engine_ = value_of(engine::Engine::open(
      {.storage = storage_, .reader = *reader_, .clock = clock_}, directory, options, {}, never));
}

std::vector<float> all_logits(engine::Engine& engine, engine::Sequence& sequence,
                              std::span<const TokenId> tokens, size_t rows_per_pass) {
  std::vector<float> logits;
  const CancelToken never;
  for (size_t done = 0; done < tokens.size();) {
    const size_t count = std::min(rows_per_pass, tokens.size() - done);
    const engine::PassRequest request{.sequence = &sequence,
                                      .tokens = tokens.subspan(done, count),
                                      .logits = engine::LogitsOf::AllRows};
    engine::Pass pass = value_of(engine::run_pass(engine, std::span(&request, 1), never));
    for (size_t row = 0; row < count; ++row) {
      const std::span<const float> values = pass.logits(0, row);
      logits.insert(logits.end(), values.begin(), values.end());
    }
    pass.commit(0, count);
    done += count;
  }
  return logits;
}

namespace {

class LastLogits final : public engine::GenerationListener {
 public:
  explicit LastLogits(std::vector<float>* out) : out_(out) {}
  void on_token(TokenId, std::span<const float> logits) override {
    if (out_ != nullptr) out_->assign(logits.begin(), logits.end());
  }

 private:
  std::vector<float>* out_;
};

}  // namespace

std::vector<TokenId> greedy(engine::Engine& engine, std::span<const TokenId> prompt, size_t count,
                            std::vector<float>* last_logits) {
  engine::Sequence sequence = engine.new_sequence();
  LastLogits listener(last_logits);
  const CancelToken never;
  engine::GenerateRequest request;
  request.prompt.assign(prompt.begin(), prompt.end());
  request.max_tokens = count;
  return value_of(engine::generate(engine, sequence, request, listener, never)).tokens;
}

std::vector<TokenId> to_tokens(const std::vector<int32_t>& ids) { return {ids.begin(), ids.end()}; }

double max_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double(a[i]) - double(b[i]));
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

}  // namespace deltafin::test
