// What stands behind a flag, read strictly: the whole text has to mean something.
//
// Messages say what was found and what was expected; the flag's name goes in front by within().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "memory/budget.h"

namespace deltafin::cli {

// Without the blanks around it.
std::string_view trimmed(std::string_view text);

// Errors of all of these: Usage.
Result<uint64_t> parse_integer(std::string_view text, uint64_t least, uint64_t most);
// Any finite number, in decimal notation.
Result<float> parse_real(std::string_view text);
// "2GB" (2 x 10^9), "512MiB" (512 x 2^20), "1.5 TB", or plain bytes. Units in any case; fractions
// are cut to whole bytes.
Result<uint64_t> parse_size(std::string_view text);
// A size, "80%" of what this process may use, or "auto".
Result<memory::BudgetRule> parse_budget(std::string_view text);
// "7.2", in billions a second (GB/s): how many a second. Above 0.
Result<double> parse_rate(std::string_view text);
// "1,2,3", blanks allowed around each; at least one. Each id is one that some vocabulary could
// have.
Result<std::vector<TokenId>> parse_ids(std::string_view text);

// Takes the text behind a flag to where it belongs, or says what is wrong with it.
using Setter = std::function<Status(std::string_view)>;

// `into` must outlive the setter.
Setter integer_into(std::optional<uint64_t>& into, uint64_t least, uint64_t most);
Setter real_into(std::optional<float>& into);
Setter size_into(std::optional<uint64_t>& into);
Setter budget_into(std::optional<memory::BudgetRule>& into);
Setter rate_into(std::optional<double>& into);
Setter ids_into(std::optional<std::vector<TokenId>>& into);
Setter text_into(std::optional<std::string>& into);

}  // namespace deltafin::cli
