// The tokenizer of a tokenizer.json, as Qwen publishes it: byte-level BPE.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace deltafin::text {

// The tokenizer that `json` describes, in the terms of Hugging Face's tokenizers:
//   normalizer     null or NFC
//   pre_tokenizer  Split by a published pattern (qwen_pattern), then ByteLevel
//   model          BPE: vocab, ids 0..N-1, tokens in GPT-2's alphabet of bytes, every single byte
//                  among them; merges, each "a b" or ["a", "b"]; ignore_merges
//   added_tokens   control tokens, ids N and on without a gap. Those that are not "special" are no
//                  less structure: the flag says only who is to see them (Tokenizer::is_special).
//   decoder        ByteLevel
//   post_processor null or ByteLevel, which changes no ids
// Everything else that would change tokens is refused by its name: other types, truncation,
// padding, dropout, byte_fallback, unk_token, affixes, stripping or single-word or normalised added
// tokens, and any field that is not known. `path` is for messages only.
//
// Errors: BadModel, naming path, field, what was found and what was expected.
Result<std::unique_ptr<Tokenizer>> make_byte_level_tokenizer(std::string json,
                                                             const std::string& path);

}  // namespace deltafin::text
