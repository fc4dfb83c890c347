// An opened engine for tests, on the real file system or on whatever seams the test brings.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/engine.h"
#include "engine/generate.h"
#include "engine/pass.h"
#include "io/file.h"
#include "io/reader.h"

namespace deltafin::test {

// Owns the real environment of an engine.
class EngineFixture {
 public:
  // Throws with the error's text when the checkpoint does not open.
  explicit EngineFixture(const std::string& directory, engine::EngineOptions options = {});

  engine::Engine& engine() { return *engine_; }

 private:
  io::PosixStorage storage_;
  SystemClock clock_;
  std::unique_ptr<io::Reader> reader_;
  std::unique_ptr<engine::Engine> engine_;
};

// How to cut a prompt into passes: rows per pass, repeated until the prompt is done.
// Returns the logits of every position, [positions x vocab]. Throws on errors.
std::vector<float> all_logits(engine::Engine& engine, engine::Sequence& sequence,
                              std::span<const TokenId> tokens, size_t rows_per_pass);

// `count` greedy tokens after the prompt; `last_logits` receives the row that produced the last
// one.
std::vector<TokenId> greedy(engine::Engine& engine, std::span<const TokenId> prompt, size_t count,
                            std::vector<float>* last_logits = nullptr);

std::vector<TokenId> to_tokens(const std::vector<int32_t>& ids);

// Largest absolute difference.
double max_difference(std::span<const float> a, std::span<const float> b);

// Throws std::runtime_error with the error's text.
[[noreturn]] void throw_error(const Error& error);
template <class T>
T value_of(Result<T> result) {
  if (!result) throw_error(result.error());
  return std::move(*result);
}

}  // namespace deltafin::test
