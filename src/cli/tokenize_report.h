// What deltafin tokenize found, as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "text/tokenizer.h"

namespace deltafin::cli {

// "1,2,3", which --ids reads.
std::string id_list(const std::vector<TokenId>& ids);

// The tokens as text, control tokens as they are spelled; bytes that are not UTF-8 become U+FFFD.
// Errors: Usage, for an id outside the vocabulary.
Result<std::string> decoded(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids);

// Schema "deltafin.tokenize.v1" (docs/cli.md). Errors: as decoded().
Result<nlohmann::ordered_json> tokenize_json(const text::Tokenizer& tokenizer,
                                             const std::string& directory,
                                             const std::vector<TokenId>& ids);

}  // namespace deltafin::cli
