// The fields that requests for completions and for chats have in common. Pure.
#pragma once

#include "serve/api/field_reader.h"
#include "serve/api/generation_request.h"

namespace deltafin::serve {

// Errors: 404 for another model than the one that is served.
void read_model(FieldReader& body, const std::string& model_id);

// Everything in GenerationFields but max_tokens and logprobs, which differ.
void read_generation_fields(FieldReader& body, const ApiDefaults& defaults,
                            GenerationFields& fields);

// max_tokens or max_completion_tokens; both only if they agree.
std::optional<uint64_t> read_max_tokens(FieldReader& body, uint64_t least);

// An array of token ids; none after an error, which names the place behind `path`.
std::vector<TokenId> read_ids(FieldReader& body, const text::JsonValue::Array& array,
                              const std::string& path, size_t vocab_size);

// How tokens are chosen: what the request says, else what the server's defaults say. They pass
// engine::validate() unless there is an error.
engine::SamplingParameters read_sampling(FieldReader& body, const ApiDefaults& defaults);

}  // namespace deltafin::serve
