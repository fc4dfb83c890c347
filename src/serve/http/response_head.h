// The head of an answer as bytes. Pure but for the date.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "serve/http/http_server.h"

namespace deltafin::serve {

// What the request says about the form of its answer.
struct ResponseForm {
  bool http_1_1 = true;
  bool keep_alive = true;   // else the end of the connection is the end of the answer
  bool head_only = false;   // HEAD
  HeaderList headers = {};  // added to the answer, whatever it is
};

// With `content_length` a whole body follows, without it a stream. A status without a body (204,
// 304) gets no length.
std::string response_head(const ResponseForm& form, unsigned status, std::string_view content_type,
                          std::optional<uint64_t> content_length, const HeaderList& more);

// Whether answers of that status have a body.
bool has_body(unsigned status);

// One chunk of a chunked body. Not for an empty piece, which would end the body.
void append_chunk(std::string_view piece, std::string& to);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace deltafin::serve
