// generation_config.json: how the makers of a model want its text to be chosen and ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "io/file.h"

namespace deltafin::cli {

struct GenerationDefaults {
  std::vector<TokenId> eos_ids;  // the file may have one id or a list
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<uint32_t> top_k;
};

// Pure. Fields that we have no use for are skipped unread. Errors: BadModel, naming the field, what
// was found and what was expected.
Result<GenerationDefaults> parse_generation_defaults(std::string_view json);

// Of a model directory; empty when it has no such file. Errors: BadModel, Io; naming the path.
Result<GenerationDefaults> load_generation_defaults(const io::Storage& storage,
                                                    const std::string& directory);

// The tokens that end a text: those of the file, the one of config.json if there is one, in a chat
// the end of the model's turn; each once.
std::vector<TokenId> stop_tokens(const GenerationDefaults& defaults,
                                 std::optional<TokenId> eos_token_id,
                                 std::optional<TokenId> end_of_turn);

}  // namespace deltafin::cli
