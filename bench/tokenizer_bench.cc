// Tokenizers: text per second and time to load. The vocabulary is that of the bundled model and,
// where DELTAFIN_TEST_DATA names a folder that has them, those of Kimi and Qwen3; the text is what
// DELTAFIN_BENCH_TEXT names, or else the documents and sources of this repository.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "row.h"
#include "text/byte_level_tokenizer.h"
#include "text/control_tokens.h"
#include "text/kimi_tokenizer.h"
#include "text/rank_file.h"
#include "text/tokenizer.h"

namespace deltafin::bench {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string repository_text() {
  std::vector<fs::path> paths;
  for (const char* folder : {"docs", "src"})
    for (const fs::directory_entry& entry :
         fs::recursive_directory_iterator(fs::path(DELTAFIN_SOURCE_DIR) / folder))
      if (entry.is_regular_file()) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::string text;
  for (const fs::path& path : paths) text += read(path);
  return text;
}

const std::string& bench_text() {
  static const std::string text = [] {
    const char* path = std::getenv("DELTAFIN_BENCH_TEXT");
    return path != nullptr ? read(path) : repository_text();
  }();
  return text;
}

using Opener = Result<std::unique_ptr<text::Tokenizer>> (*)(const std::string& path);

Result<std::unique_ptr<text::Tokenizer>> open_kimi(const std::string& path) {
  TRY(const std::string ranks, io::read_text(io::PosixStorage(), path, UINT32_MAX));
  TRY(text::RankTable table, text::parse_rank_file(ranks, path));
  const TokenId first_id = static_cast<TokenId>(table.size());
  return text::make_kimi_tokenizer(std::move(table), text::ControlTokens::of_k3(first_id));
}

Result<std::unique_ptr<text::Tokenizer>> open_byte_level(const std::string& path) {
  TRY(std::string json, io::read_text(io::PosixStorage(), path, UINT32_MAX));
  return text::make_byte_level_tokenizer(std::move(json), path);
}

void load(benchmark::State& state, Opener open, const std::string& path) {
  for (auto _ : state) benchmark::DoNotOptimize(open(path).value());
  set_counters(state, double(fs::file_size(path)), 0, 0, 0);
}

void encode(benchmark::State& state, Opener open, const std::string& path,
            const std::string& text) {
  const std::unique_ptr<text::Tokenizer> tokenizer = open(path).value();
  for (auto _ : state)
    benchmark::DoNotOptimize(tokenizer->encode(text, text::SpecialTokens::AsText).value());
  set_counters(state, double(text.size()), 0, 0, 0);
}

// What would show a quadratic step: a million of one unit, without a place to split.
std::string repeated(std::string_view unit) {
  std::string text;
  while (text.size() < 1'000'000) text += unit;
  return text;
}

void add(const std::string& name, Opener open, const std::string& path) {
  const auto add_encode = [&](const std::string& what, std::string text) {
    benchmark::RegisterBenchmark(("encode/" + name + "/" + what).c_str(), encode, open, path,
                                 std::move(text))
        ->Unit(benchmark::kMillisecond);
  };
  benchmark::RegisterBenchmark(("load/" + name).c_str(), load, open, path)
      ->Unit(benchmark::kMillisecond);
  add_encode("text", bench_text());
  add_encode("one_letter", repeated("a"));
  add_encode("spaces", repeated(" "));
  add_encode("letters", repeated("qwertyuiopasdfghjklzxcvbnm"));
}

const bool registered = [] {
  add("demo", open_kimi, DELTAFIN_SOURCE_DIR "/models/demo/tiktoken.model");
  if (const char* data = std::getenv("DELTAFIN_TEST_DATA")) {
    const std::string folder = io::join_path(data, "tokenizers");
    add("kimi", open_kimi, io::join_path(folder, "kimi_tiktoken.model"));
    add("qwen3", open_byte_level, io::join_path(folder, "qwen3/tokenizer.json"));
  }
  return true;
}();

}  // namespace
}  // namespace deltafin::bench
