#include "cli/tokenize_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "text/stream_decoder.h"

namespace deltafin::cli {

namespace {

std::string readable(std::string_view bytes) {
  text::StreamDecoder decoder;
  std::string text = decoder.push(bytes);
  return text + decoder.finish();
}

std::string hex(std::string_view bytes) {
  std::string digits;
  for (const char byte : bytes) digits += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return digits;
}

}  // namespace

std::string id_list(const std::vector<TokenId>& ids) {
  return fmt::format("{}", fmt::join(ids, ","));
}

Result<std::string> decoded(const text::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  TRY(const std::string bytes, tokenizer.decode(ids));
  return readable(bytes);
}

Result<nlohmann::ordered_json> tokenize_json(const text::Tokenizer& tokenizer,
                                             const std::string& directory,
                                             const std::vector<TokenId>& ids) {
  TRY(const std::string text, decoded(tokenizer, ids));
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array();
  for (const TokenId id : ids) {
    TRY(const std::string_view bytes, tokenizer.bytes_of(id));
    tokens.push_back({{"id", id},
                      {"text", readable(bytes)},
                      {"bytes", hex(bytes)},
                      {"control", tokenizer.find_control_token(bytes) == id}});
  }
  return nlohmann::ordered_json{{"schema", "deltafin.tokenize.v1"},
                                {"directory", directory},
                                {"vocabulary_size", tokenizer.vocabulary_size()},
                                {"text", text},
                                {"ids", ids},
                                {"tokens", std::move(tokens)}};
}

}  // namespace deltafin::cli
