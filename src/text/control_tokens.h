// The control tokens that follow the ordinary ones in a vocabulary.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/token.h"

namespace deltafin::text {

// Kimi's wrapper reserves as many ids, whatever the number of ranks. One that nothing names is
// spelled <|reserved_token_ID|>.
inline constexpr size_t kKimiControlTokenCount = 256;

// Immutable; any thread may read.
class ControlTokens {
 public:
  // A control token spelled in a text.
  struct Match {
    size_t begin;
    size_t size;
    TokenId id;
  };

  // Spelled like this, in the order of their ids. `path` is for messages only. Errors: BadModel,
  // for a spelling of two tokens, or one longer than limits::kControlTokenBytes.
  static Result<ControlTokens> create(TokenId first_id, std::vector<std::string> spellings,
                                      const std::string& path);

  // Kimi's. The names of K3, which stand at fixed distances from `first_id`.
  static ControlTokens of_k3(TokenId first_id);

  // Kimi's. The names that `json`, the text of a tokenizer_config.json, gives in
  // added_tokens_decoder; those of K3 when it has no such field. `path` is for messages only.
  // Errors: BadModel, naming path and field: not JSON, a field of another type, an id that is no
  // control token of this vocabulary, an empty spelling, a spelling of two tokens.
  static Result<ControlTokens> from_config(std::string_view json, const std::string& path,
                                           TokenId first_id);

  TokenId first_id() const { return first_id_; }
  bool contains(TokenId id) const {
    return id >= first_id_ && static_cast<size_t>(id - first_id_) < size();
  }
  size_t size() const { return spellings_.size(); }
  // `id` must be one that contains() knows.
  std::string_view spelling(TokenId id) const;

  // The control token of exactly this spelling.
  std::optional<TokenId> id_of(std::string_view spelling) const;

  // The first control token spelled in `text` at or after `from`; of those that start at the same
  // place, the longest.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  ControlTokens(TokenId first_id, std::vector<std::string> spellings);
  Status check_distinct(const std::string& path) const;
  std::optional<Match> longest_at(std::string_view text, size_t at) const;

  TokenId first_id_;
  std::vector<std::string> spellings_;  // by distance from the first id
  std::vector<size_t> sorted_;          // the distances, sorted by spelling
  std::string first_bytes_;             // with which any spelling starts
};

}  // namespace deltafin::text
