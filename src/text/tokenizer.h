// Text to token ids and back, for one vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token.h"
#include "io/file.h"

namespace deltafin::text {

// How text that spells a control token is read.
enum class SpecialTokens : uint8_t {
  AsText,  // as ordinary bytes: nothing a user writes becomes structure
  Parse,   // as the control token it spells
};

// Immutable: any thread may use it at any time.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Adds no token of its own, so the bytes of the tokens put together are `text`.
  // Errors: Usage, when `text` is not well-formed UTF-8 (naming the offset of the first byte that
  // is not) or longer than limits::kPromptBytes.
  virtual Result<std::vector<TokenId>> encode(std::string_view text, SpecialTokens mode) const = 0;
  // The bytes of one token; control tokens give their spelling. Errors: Usage, for an id outside
  // the vocabulary.
  virtual Result<std::string_view> bytes_of(TokenId id) const = 0;
  virtual bool is_special(TokenId id) const = 0;
  virtual size_t vocabulary_size() const = 0;
};

// Opens the tokenizer that lies in a model directory: today a rank file, tiktoken.model or else the
// one file *.tiktoken, with the names of the control tokens in tokenizer_config.json beside it;
// without that file they have the names of K3.
//
// Errors: BadModel, naming file and line or field, or what was looked for; Io.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const io::Storage& storage,
                                                  const std::string& directory);

}  // namespace deltafin::text
