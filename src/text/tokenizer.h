// Text to token ids and back, for one vocabulary.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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

// A vocabulary has ordinary tokens, which merging bytes leads to, and control tokens, which only
// SpecialTokens::Parse gives. Immutable: any thread may use it at any time.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Adds no token of its own, so the bytes of the tokens put together are `text`, or its Unicode
  // normal form NFC where the vocabulary asks for that (Qwen; control tokens are never normalised).
  // Errors: Usage, when `text` is not well-formed UTF-8 (naming the offset of the first byte that
  // is not) or longer than limits::kPromptBytes.
  virtual Result<std::vector<TokenId>> encode(std::string_view text, SpecialTokens mode) const = 0;
  // The bytes of one token; control tokens give their spelling. Errors: Usage, for an id outside
  // the vocabulary.
  virtual Result<std::string_view> bytes_of(TokenId id) const = 0;
  // The bytes of all of them, one behind the other: not always whole code points. Errors: bytes_of.
  Result<std::string> decode(std::span<const TokenId> ids) const;

  // The control token that is spelled so, whole; nothing when none is.
  virtual std::optional<TokenId> find_control_token(std::string_view spelling) const = 0;
  // Whether a reader of the model's text is to be spared this token: a control token, unless its
  // makers say that it is to be seen, such as Qwen's <think>.
  virtual bool is_special(TokenId id) const = 0;
  // All ids are below it.
  virtual size_t vocabulary_size() const = 0;
};

// Opens the tokenizer that lies in a model directory: the rank file tiktoken.model, or else
// tokenizer.json, or else the one rank file *.tiktoken. Beside a rank file, tokenizer_config.json
// has the names of the control tokens; without it they have the names of K3.
//
// Errors: BadModel, naming file and line or field, or what was looked for; Io.
Result<std::unique_ptr<Tokenizer>> open_tokenizer(const io::Storage& storage,
                                                  const std::string& directory);

}  // namespace deltafin::text
