#include "capped_run.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <stdio.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "base/philox.h"
#include "support/memory_group.h"

namespace deltafin::bench {

namespace {

// Every model has so many tokens.
constexpr uint64_t kTokens = 500;

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "capped_bench: {}\n", what);
  std::exit(1);
}

std::string some_ids(size_t count) {
  Random random(7);
  std::vector<uint64_t> ids(count);
  for (uint64_t& id : ids) id = random.below(kTokens);
  return fmt::format("{}", fmt::join(ids, ","));
}

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

// Runs the program by a shell, which moves itself to `entrance` first, unless that is empty.
nlohmann::json report_of(const std::vector<std::string>& arguments, const std::string& entrance) {
  std::string command = entrance.empty() ? "" : "echo $$ >" + quoted(entrance) + " && ";
  command += "exec " + quoted(DELTAFIN_PROGRAM);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  FILE* const pipe = ::popen((command + " 2>/dev/null").c_str(), "re");
  if (pipe == nullptr) give_up("no shell can be started");
  std::string output;
  std::array<char, 65536> buffer{};
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  if (status != 0) give_up(fmt::format("status {} of: {}", status, command));
  return nlohmann::json::parse(output);
}

}  // namespace

CappedResult run_capped(const CappedRun& run) {
  std::vector<std::string> arguments = {"run",          run.model,
                                        "--memory",     std::to_string(run.budget_bytes),
                                        "--ids",        some_ids(run.prompt_count),
                                        "--max-tokens", std::to_string(run.answer_count),
                                        "--ignore-eos", "--json",
                                        "--stats"};
  arguments.insert(arguments.end(), run.more.begin(), run.more.end());
  if (!run.limit_bytes) return {.report = report_of(arguments, "")};
  const Result<test::MemoryGroup> group = test::MemoryGroup::make(*run.limit_bytes);
  if (!group) give_up(group.error().what);
  nlohmann::json report = report_of(arguments, group->entrance());
  return {.report = std::move(report), .group_peak_bytes = group->peak_bytes()};
}

nlohmann::json plan_of(const std::string& model, size_t context) {
  return report_of({"plan", model, "--json", "--memory", "1000000GB", "--disk-gbps", "1",
                    "--ram-gbps", "10", "--context", std::to_string(context)},
                   "")
      .at("plan");
}

std::string why_not_capped() {
  const Result<test::MemoryGroup> group = test::MemoryGroup::make(1ull << 30);
  return group ? "" : group.error().what;
}

}  // namespace deltafin::bench
