// Saved and loaded sequences: a generation that was cut in two, with a file between, gives the
// tokens and the bits of the whole one. Every family, on all sides of a page border, across threads
// and instruction sets.
#include "state/snapshot.h"

#include <gtest/gtest.h>

#include "checkpoint/identity.h"
#include "engine/generate.h"
#include "io/simulated.h"
#include "support/engine_fixture.h"
#include "support/golden.h"
#include "support/same_bits.h"

namespace deltafin::engine {
namespace {

using test::EngineFixture;
using test::value_of;

constexpr const char* kModels[] = {"tiny-k3", "tiny-kimi-linear", "tiny-qwen3.5-moe",
                                   "tiny-qwen3-moe", "tiny-qwen3"};

state::SnapshotOwner owner_of(const Engine& engine) {
  return {.arithmetic = std::string(numerics::kArithmetic),
          .identity = {},
          .vocab_size = engine.vocab_size(),
          .max_positions = engine.contract().max_positions};
}

std::vector<std::byte> save(const Engine& engine, const Sequence& sequence,
                            const Continuation& next) {
  std::vector<std::byte> bytes;
  const Status status = state::write_snapshot(owner_of(engine),
                                              {.state = sequence.state(),
                                               .tokens = sequence.tokens(),
                                               .waiting = next.waiting,
                                               .logits = next.logits},
                                              [&](std::span<const std::byte> more) {
                                                bytes.insert(bytes.end(), more.begin(), more.end());
                                                return Status();
                                              });
  if (!status) test::throw_error(status.error());
  return bytes;
}

// What is heard of a generation.
class Heard final : public GenerationListener {
 public:
  // `cancel` is set when `count` tokens were heard.
  explicit Heard(CancelToken* cancel = nullptr, size_t count = 0)
      : cancel_(cancel), count_(count) {}
  void on_token(TokenId token, std::span<const float> row) override {
    tokens.push_back(token);
    logits.insert(logits.end(), row.begin(), row.end());
    if (cancel_ != nullptr && tokens.size() == count_) cancel_->cancel();
  }
  std::vector<TokenId> tokens;
  std::vector<float> logits;

 private:
  CancelToken* cancel_;
  size_t count_;
};

// A sequence with what comes next, as a program has it after loading.
struct Loaded {
  Sequence sequence;
  GenerateRequest request;
};

Loaded load(const Engine& engine, const std::vector<std::byte>& bytes,
            const GenerateRequest& like) {
  io::SimulatedStorage storage;
  storage.add_file("/f", bytes);
  const CancelToken never;
  state::Snapshot snapshot = value_of(state::read_snapshot(
      *value_of(storage.open("/f")), owner_of(engine), engine.state_layout(), never));
  Loaded loaded{.sequence = {std::move(snapshot.tokens), std::move(snapshot.state)},
                .request = like};
  loaded.request.prompt = std::move(snapshot.waiting);
  if (loaded.request.prompt.empty()) loaded.request.logits = std::move(snapshot.logits);
  return loaded;
}

std::vector<TokenId> prompt_of(const Engine& engine, size_t count) {
  std::vector<TokenId> tokens(count);
  for (size_t i = 0; i < count; ++i) tokens[i] = TokenId((i * 37 + 11) % engine.vocab_size());
  return tokens;
}

GenerateRequest request_for(const Engine& engine, size_t prompt_size, uint64_t max_tokens) {
  GenerateRequest request;
  request.prompt = prompt_of(engine, prompt_size);
  request.max_tokens = max_tokens;
  return request;
}

Heard whole(Engine& engine, const GenerateRequest& request) {
  Sequence sequence = engine.new_sequence();
  Heard heard;
  const CancelToken never;
  value_of(generate(engine, sequence, request, heard, never));
  return heard;
}

// The file after the first `first` tokens of `request`.
std::vector<std::byte> begin_and_save(Engine& engine, GenerateRequest request, uint64_t first,
                                      Heard& heard) {
  Sequence sequence = engine.new_sequence();
  request.max_tokens = first;
  const CancelToken never;
  const GenerationResult result = value_of(generate(engine, sequence, request, heard, never));
  return save(engine, sequence, result.next);
}

void go_on(Engine& engine, const std::vector<std::byte>& bytes, const GenerateRequest& request,
           Heard& heard) {
  Loaded loaded = load(engine, bytes, request);
  loaded.request.max_tokens = request.max_tokens - heard.tokens.size();
  const CancelToken never;
  value_of(generate(engine, loaded.sequence, loaded.request, heard, never));
}

void expect_same(const Heard& found, const Heard& expected, const std::string& what) {
  EXPECT_EQ(found.tokens, expected.tokens) << what;
  test::expect_same_bits(found.logits, expected.logits, what);
}

TEST(SavedSequence, GoesOnWithTheSameBitsWhereverItIsCut) {
  for (const char* name : kModels) {
    EngineFixture fixture(test::golden_path(name));
    Engine& engine = fixture.engine();
    const GenerateRequest request = request_for(engine, 9, 6);
    const Heard expected = whole(engine, request);
    for (const uint64_t first : {0u, 1u, 3u, 5u}) {
      Heard heard;
      const std::vector<std::byte> bytes = begin_and_save(engine, request, first, heard);
      go_on(engine, bytes, request, heard);
      expect_same(heard, expected, std::string(name) + " after " + std::to_string(first));
    }
  }
}

// With one generated token the state has as many positions as the prompt.
TEST(SavedSequence, GoesOnOnEverySideOfAPageBorder) {
  for (const char* name : kModels) {
    EngineFixture fixture(test::golden_path(name));
    Engine& engine = fixture.engine();
    for (const size_t positions : {511u, 512u, 513u}) {
      if (positions + 4 > engine.contract().max_positions) continue;
      const GenerateRequest request = request_for(engine, positions, 3);
      Heard heard;
      const std::vector<std::byte> bytes = begin_and_save(engine, request, 1, heard);
      go_on(engine, bytes, request, heard);
      expect_same(heard, whole(engine, request),
                  std::string(name) + " at " + std::to_string(positions));
    }
  }
}

TEST(SavedSequence, IsTheSameFileForAnyThreadsAndInstructionSetAndGoesOnWithAny) {
  for (const char* name : kModels) {
    std::vector<std::byte> first_bytes;
    Heard expected;
    for (const numerics::Kernels& kernels : numerics::kernel_variants()) {
      for (const size_t threads : {1u, 3u}) {
        EngineFixture fixture(test::golden_path(name),
                              {.thread_count = threads, .kernels = &kernels});
        Engine& engine = fixture.engine();
        const GenerateRequest request = request_for(engine, 9, 5);
        Heard heard;
        const std::vector<std::byte> bytes = begin_and_save(engine, request, 3, heard);
        if (first_bytes.empty()) {
          first_bytes = bytes;
          expected = whole(engine, request);
        }
        EXPECT_TRUE(bytes == first_bytes)
            << name << " " << std::string(kernels.name) << " " << threads;
        go_on(engine, first_bytes, request, heard);
        expect_same(heard, expected, std::string(name) + " " + std::string(kernels.name));
      }
    }
  }
}

TEST(SavedSequence, DrawsAndPunishesAsIfItHadNotBeenCut) {
  EngineFixture fixture(test::golden_path("tiny-k3"));
  Engine& engine = fixture.engine();
  GenerateRequest request = request_for(engine, 9, 12);
  request.sampling = {.temperature = 1.5f,
                      .top_p = 0.95f,
                      .repetition_penalty = 1.3f,
                      .presence_penalty = 0.2f,
                      .frequency_penalty = 0.1f,
                      .seed = 77};
  const Heard expected = whole(engine, request);
  for (const uint64_t first : {0u, 1u, 6u}) {
    Heard heard;
    const std::vector<std::byte> bytes = begin_and_save(engine, request, first, heard);
    go_on(engine, bytes, request, heard);
    expect_same(heard, expected, "after " + std::to_string(first));
  }
}

TEST(SavedSequence, TakesMoreWordsBehindWhatWaits) {
  EngineFixture fixture(test::golden_path("tiny-kimi-linear"));
  Engine& engine = fixture.engine();
  const GenerateRequest request = request_for(engine, 9, 3);
  Heard heard;
  const std::vector<std::byte> bytes = begin_and_save(engine, request, 3, heard);
  const std::vector<TokenId> words = {5, 6, 7};
  GenerateRequest all = request;
  all.prompt.insert(all.prompt.end(), heard.tokens.begin(), heard.tokens.end());
  all.prompt.insert(all.prompt.end(), words.begin(), words.end());

  Loaded loaded = load(engine, bytes, request);
  loaded.request.prompt.insert(loaded.request.prompt.end(), words.begin(), words.end());
  Heard more;
  const CancelToken never;
  value_of(generate(engine, loaded.sequence, loaded.request, more, never));
  expect_same(more, whole(engine, all), "");
  EXPECT_EQ(loaded.sequence.position_count(), all.prompt.size() + 2);
}

// The stop token is not part of the text; who wants to go on over it chooses it again.
TEST(SavedSequence, StopsAgainAtAStopTokenOrGoesOnOverIt) {
  EngineFixture fixture(test::golden_path("tiny-k3"));
  Engine& engine = fixture.engine();
  const GenerateRequest request = request_for(engine, 9, 5);
  const Heard expected = whole(engine, request);
  GenerateRequest stopping = request;
  stopping.stop_tokens = {expected.tokens[2]};
  ASSERT_NE(expected.tokens[0], expected.tokens[2]);
  ASSERT_NE(expected.tokens[1], expected.tokens[2]);
  Heard first;
  const std::vector<std::byte> bytes = begin_and_save(engine, stopping, 5, first);
  ASSERT_EQ(first.tokens.size(), 3u);

  const CancelToken never;
  Loaded again = load(engine, bytes, stopping);
  Heard heard;
  const GenerationResult result =
      value_of(generate(engine, again.sequence, again.request, heard, never));
  EXPECT_EQ(result.reason, StopReason::StopToken);
  EXPECT_TRUE(result.tokens.empty());

  Loaded over = load(engine, bytes, request);
  over.request.max_tokens = 3;
  const GenerationResult rest =
      value_of(generate(engine, over.sequence, over.request, heard, never));
  EXPECT_EQ(rest.tokens, std::vector<TokenId>(expected.tokens.begin() + 2, expected.tokens.end()));
}

TEST(SavedSequence, KeepsWhatAnInterruptLeft) {
  EngineFixture fixture(test::golden_path("tiny-qwen3.5-moe"));
  Engine& engine = fixture.engine();
  const GenerateRequest request = request_for(engine, 9, 6);
  CancelToken cancel;
  Heard heard(&cancel, 3);
  Sequence sequence = engine.new_sequence();
  const GenerationResult result = value_of(generate(engine, sequence, request, heard, cancel));
  EXPECT_EQ(result.next.waiting, std::vector<TokenId>{heard.tokens[2]});
  go_on(engine, save(engine, sequence, result.next), request, heard);
  expect_same(heard, whole(engine, request), "");
}

TEST(SavedSequence, KeepsTheRestOfAnInterruptedPrompt) {
  class AfterTheFirstPass final : public GenerationListener {
   public:
    explicit AfterTheFirstPass(CancelToken& cancel) : cancel_(cancel) {}
    void on_prefill(const PrefillProgress& progress) override {
      if (progress.rows_done > 0) cancel_.cancel();
    }

   private:
    CancelToken& cancel_;
  };
  EngineFixture fixture(test::golden_path("tiny-k3"));
  Engine& engine = fixture.engine();
  GenerateRequest request = request_for(engine, 9, 4);
  request.prefill_rows = 4;
  CancelToken cancel;
  AfterTheFirstPass listener(cancel);
  Sequence sequence = engine.new_sequence();
  const GenerationResult result = value_of(generate(engine, sequence, request, listener, cancel));
  EXPECT_EQ(result.reason, StopReason::Interrupted);
  EXPECT_EQ(sequence.position_count(), 4u);
  EXPECT_EQ(result.next.waiting,
            std::vector<TokenId>(request.prompt.begin() + 4, request.prompt.end()));
  Heard heard;
  go_on(engine, save(engine, sequence, result.next), request, heard);
  expect_same(heard, whole(engine, request), "");
}

}  // namespace
}  // namespace deltafin::engine
