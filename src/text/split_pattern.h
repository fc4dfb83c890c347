// A regular expression (PCRE2) that cuts text into the pieces that are tokenized one by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/result.h"

// PCRE2's own types, declared here so that its header and macros stay in split_pattern.cc.
struct pcre2_real_code_8;
struct pcre2_real_match_context_8;
struct pcre2_real_match_data_8;

namespace deltafin::text {

// The characters with the property White_Space, to be put between the brackets of a class. It is
// what \s means in the patterns that models publish; in PCRE2 that includes U+180E.
inline constexpr std::string_view kWhiteSpace =
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

struct PcreDelete {
  void operator()(pcre2_real_code_8* code) const;
  void operator()(pcre2_real_match_context_8* context) const;
  void operator()(pcre2_real_match_data_8* data) const;
};

enum class RegexEngine : uint8_t {
  Compiled,     // to machine code, where the machine lets us; otherwise as Interpreted
  Interpreted,  // five times slower, the same matches
};

struct SplitOptions {
  RegexEngine engine = RegexEngine::Compiled;
  uint32_t steps_max = limits::kSplitSteps;       // of backtracking, to find one piece
  uint32_t heap_kib_max = limits::kSplitHeapKib;  // of the interpreter
};

class SplitPattern {
 public:
  // What one thread needs while it splits; it may be used again and again.
  class Scratch {
   public:
    explicit Scratch(const SplitPattern& pattern);

   private:
    friend class SplitPattern;
    std::unique_ptr<pcre2_real_match_data_8, PcreDelete> data_;
    std::unique_ptr<pcre2_real_match_context_8, PcreDelete> context_;
  };

  // Compiles `pattern`, with UTF-8 and Unicode properties on.
  // Errors: Usage, with PCRE2's explanation and the offset in the pattern.
  static Result<SplitPattern> compile(std::string_view pattern, const SplitOptions& options);

  // Cuts `text`, which must be well-formed UTF-8, into the successive matches of the pattern,
  // leaving out empty ones; text between two matches is a piece too, so the pieces put together are
  // `text`. `pieces` is overwritten with views into `text`. Looking ahead sees no further than
  // `text`. Thread-safe, with a scratch for each thread. Errors: Usage, when a piece needs more
  // steps or memory than the options allow.
  Status split(std::string_view text, Scratch& scratch,
               std::vector<std::string_view>& pieces) const;

 private:
  SplitPattern() = default;

  std::unique_ptr<pcre2_real_code_8, PcreDelete> code_;
  SplitOptions options_;
};

}  // namespace deltafin::text
