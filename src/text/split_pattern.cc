#include "text/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <new>
#include <string>

#include "base/check.h"
#include "text/utf8.h"

namespace deltafin::text {

namespace {

std::string explain(int pcre2_error) {
  PCRE2_UCHAR message[256] = {};
  pcre2_get_error_message(pcre2_error, message, sizeof message);
  return reinterpret_cast<const char*>(message);
}

// The first match at or after `from`; what pcre2_match returns.
int match(const pcre2_code* code, std::string_view text, size_t from, pcre2_match_data* data,
          pcre2_match_context* context) {
  // Checking all the rest of the text for each piece would make splitting quadratic.
  constexpr uint32_t kFlags = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
  const PCRE2_SPTR subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const int result = pcre2_match(code, subject, text.size(), from, kFlags, data, context);
  if (result != PCRE2_ERROR_JIT_STACKLIMIT) return result;
  // Machine code backtracks on a stack of 32 KiB. A pattern whose need grows with the piece (ours
  // does not, kimi_pattern.cc) gets the interpreter there, which backtracks on the heap.
  return pcre2_match(code, subject, text.size(), from, kFlags | PCRE2_NO_JIT, data, context);
}

}  // namespace

void PcreDelete::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }
void PcreDelete::operator()(pcre2_real_match_context_8* context) const {
  pcre2_match_context_free(context);
}
void PcreDelete::operator()(pcre2_real_match_data_8* data) const { pcre2_match_data_free(data); }

SplitPattern::Scratch::Scratch(const SplitPattern& pattern)
    : data_(pcre2_match_data_create_from_pattern(pattern.code_.get(), nullptr)),
      context_(pcre2_match_context_create(nullptr)) {
  if (!data_ || !context_) throw std::bad_alloc();
  pcre2_set_match_limit(context_.get(), pattern.options_.steps_max);
  pcre2_set_heap_limit(context_.get(), pattern.options_.heap_kib_max);
}

Result<SplitPattern> SplitPattern::compile(std::string_view pattern, const SplitOptions& options) {
  int error = 0;
  size_t error_offset = 0;
  SplitPattern result;
  result.options_ = options;
  result.code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &error_offset, nullptr));
  if (!result.code_)
    return fail(ErrorCode::Usage, fmt::format("the split pattern does not compile at offset {}: {}",
                                              error_offset, explain(error)));
  // Refused where memory may not be both written and executed, or on a CPU that PCRE2 has no
  // compiler for. pcre2_match then interprets, so there is nothing to handle.
  if (options.engine == RegexEngine::Compiled)
    static_cast<void>(pcre2_jit_compile(result.code_.get(), PCRE2_JIT_COMPLETE));
  return result;
}

Status SplitPattern::split(std::string_view text, Scratch& scratch,
                           std::vector<std::string_view>& pieces) const {
  DCHECK(!find_ill_formed(text));
  pieces.clear();
  const size_t* const bounds = pcre2_get_ovector_pointer(scratch.data_.get());
  size_t at = 0;
  while (at < text.size()) {
    const int result = match(code_.get(), text, at, scratch.data_.get(), scratch.context_.get());
    if (result < 0 && result != PCRE2_ERROR_NOMATCH)
      return fail(
          ErrorCode::Usage,
          fmt::format("the text cannot be split into pieces at byte {}: {}", at, explain(result)));
    const size_t begin = result < 0 ? text.size() : bounds[0];
    if (begin > at) pieces.push_back(text.substr(at, begin - at));
    if (result < 0) break;
    pieces.push_back(text.substr(begin, bounds[1] - begin));
    at = bounds[1];
  }
  return {};
}

}  // namespace deltafin::text
