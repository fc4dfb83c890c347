#include "roofs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define DELTAFIN_TARGET(features) __attribute__((target(features)))
#endif

namespace deltafin::bench {

namespace {

constexpr size_t kMemoryBytes = 1ull << 30;
constexpr size_t kPassBytes = 256ull << 20;
constexpr size_t kTaskBytes = 2ull << 20;  // one huge page
constexpr int kPasses = 4;

double seconds_of(auto&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// --- reading ---

using Line = uint64_t __attribute__((vector_size(64)));  // one cache line; registers as there are

// Combines the kTaskBytes behind `bytes`, so that nothing can be left out. Other distances of the
// prefetch (512 bytes, 2048) were no better.
template <size_t kStreams>
[[gnu::always_inline]] inline uint64_t read(const std::byte* bytes) {
  constexpr size_t kPrefetchBytes = 1024;
  constexpr size_t kStreamBytes = kTaskBytes / kStreams, kAtOnce = 16 / kStreams;
  Line sums[16] = {};
  for (size_t at = 0; at < kStreamBytes; at += kAtOnce * sizeof(Line))
    for (size_t s = 0; s < kStreams; ++s) {
      const std::byte* from = bytes + s * kStreamBytes + at;
      if constexpr (kStreams > 1) __builtin_prefetch(from + kPrefetchBytes);
      for (size_t i = 0; i < kAtOnce; ++i) {
        Line line;
        std::memcpy(&line, from + i * sizeof(Line), sizeof(Line));
        sums[s * kAtOnce + i] ^= line;
      }
    }
  for (size_t i = 1; i < 16; ++i) sums[0] ^= sums[i];
  uint64_t all = 0;
  for (size_t i = 0; i < 8; ++i) all ^= sums[0][i];
  return all;
}

using Read = uint64_t (*)(const std::byte*, size_t streams);

uint64_t read_any(const std::byte* bytes, size_t streams) {
  return streams == 1 ? read<1>(bytes) : read<16>(bytes);
}
#if defined(__x86_64__)
DELTAFIN_TARGET("avx2") uint64_t read_256(const std::byte* bytes, size_t streams) {
  return streams == 1 ? read<1>(bytes) : read<16>(bytes);
}
DELTAFIN_TARGET("avx512f") uint64_t read_512(const std::byte* bytes, size_t streams) {
  return streams == 1 ? read<1>(bytes) : read<16>(bytes);
}
#endif

Read best_read() {
#if defined(__x86_64__)
  if (widest_vector_bits() == 512) return read_512;
  if (widest_vector_bits() == 256) return read_256;
#endif
  return read_any;
}

// --- arithmetic ---

// A chain of fmas has a latency of four cycles on two units, so eight chains would be enough.
constexpr int kChains = 12, kLinks = 20000;

// Every lane falls towards 1, far from subnormals and infinity. Each chain starts elsewhere and
// none at 1: compilers see chains that are equal or stand still, and leave them out.
constexpr float kFactor = 0.5f, kSummand = 0.5f;

float chains_any() {
  constexpr int kLanes = 4;
  float chains[kChains * kLanes];
  for (int i = 0; i < kChains * kLanes; ++i) chains[i] = float(i + 2);
  for (int link = 0; link < kLinks; ++link)
    for (float& lane : chains) lane = std::fma(lane, kFactor, kSummand);
  float sum = 0;
  for (const float lane : chains) sum += lane;
  return sum;
}
#if defined(__x86_64__)
DELTAFIN_TARGET("avx2,fma") float chains_256() {
  __m256 chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = _mm256_set1_ps(float(i + 2));
  const __m256 factor = _mm256_set1_ps(kFactor), summand = _mm256_set1_ps(kSummand);
  for (int link = 0; link < kLinks; ++link)
    for (int i = 0; i < kChains; ++i) chains[i] = _mm256_fmadd_ps(chains[i], factor, summand);
  for (int i = 1; i < kChains; ++i) chains[0] = _mm256_add_ps(chains[0], chains[i]);
  return _mm256_cvtss_f32(chains[0]);
}
DELTAFIN_TARGET("avx512f") float chains_512() {
  __m512 chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = _mm512_set1_ps(float(i + 2));
  const __m512 factor = _mm512_set1_ps(kFactor), summand = _mm512_set1_ps(kSummand);
  for (int link = 0; link < kLinks; ++link)
    for (int i = 0; i < kChains; ++i) chains[i] = _mm512_fmadd_ps(chains[i], factor, summand);
  for (int i = 1; i < kChains; ++i) chains[0] = _mm512_add_ps(chains[0], chains[i]);
  return _mm512_cvtss_f32(chains[0]);
}
#endif

struct Chains {
  float (*run)();
  int lanes;
};

Chains chains_of(size_t vector_bits) {
#if defined(__x86_64__)
  if (vector_bits == 512) return {chains_512, 16};
  if (vector_bits == 256) return {chains_256, 8};
#endif
  return {chains_any, 4};
}

}  // namespace

size_t widest_vector_bits() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 256;
#endif
  return 0;
}

ReadRoof::ReadRoof() {
  auto memory = io::Arena::map(kMemoryBytes);
  CHECK(memory.has_value());
  memory_ = std::move(*memory);
  // Pages that were never written are all the same page of zeros.
  std::ranges::fill(memory_.bytes(), std::byte{1});
}

double ReadRoof::measure(ThreadTeam& team) {
  const Read read_bytes = best_read();
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const size_t start = next_pass_++ % (kMemoryBytes / kPassBytes) * kPassBytes;
    const std::byte* bytes = memory_.bytes().data() + start;
    const double seconds = seconds_of([&] {
      team.parallel_for(kPassBytes / kTaskBytes, [&](size_t task) {
        volatile uint64_t used = read_bytes(bytes + task * kTaskBytes, pass % 2 == 0 ? 1 : 16);
        (void)used;
      });
    });
    best = std::max(best, double(kPassBytes) / seconds);
  }
  return best;
}

double fma_roof(ThreadTeam& team, size_t vector_bits) {
  constexpr size_t kTasks = 16;  // a thread; many, so that one that wakes late costs little
  const Chains chains = chains_of(vector_bits);
  const size_t tasks = kTasks * team.size();
  const double flop = 2.0 * kChains * kLinks * chains.lanes * double(tasks);
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double seconds = seconds_of([&] {
      team.parallel_for(tasks, [&](size_t) {
        volatile float used = chains.run();
        (void)used;
      });
    });
    best = std::max(best, flop / seconds);
  }
  return best;
}

}  // namespace deltafin::bench
