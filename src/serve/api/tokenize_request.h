// The bodies of POST /v1/tokenize and /v1/detokenize, and the answers to them. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "serve/api/api_error.h"

namespace deltafin::serve {

struct TokenizeRequest {
  std::string text;            // "text", or "prompt" or "content", as other servers call it
  bool parse_special = false;  // text that spells a control token is that token
  bool with_pieces = false;
};

// Errors: 400, naming the field; 404 for another model.
ApiResult<TokenizeRequest> parse_tokenize_request(std::string_view body,
                                                  const std::string& model_id);
// {"tokens": [...]}: ids below `vocab_size`.
ApiResult<std::vector<TokenId>> parse_detokenize_request(std::string_view body,
                                                         const std::string& model_id,
                                                         size_t vocab_size);

// {"tokens", "count"} and, unless `pieces` is null, "pieces": the bytes of each token, as text or
// as "bytes:\xe2\x82".
std::string tokenize_json(std::span<const TokenId> tokens, const std::vector<std::string>* pieces);
// {"text"}; what is no whole code point becomes U+FFFD.
std::string detokenize_json(std::string_view bytes);

}  // namespace deltafin::serve
