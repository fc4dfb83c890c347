// What a tokenizer.json has, taken apart but not understood.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace deltafin::text {

// The vocabulary and the merges are large, so they are read as they come; everything else is small
// and becomes a tree.
class TokenizerJson {
 public:
  struct Entry {
    std::string_view letters;
    uint64_t id;
  };
  struct Merge {
    std::string_view left, right;
  };

  // Errors: BadModel, naming the field: not JSON, model.vocab or model.merges missing, given twice
  // or not of their types, the rest not as checkpoint::parse_json_object wants it.
  static Result<TokenizerJson> read(std::string json);
  TokenizerJson(TokenizerJson&& other) noexcept;
  ~TokenizerJson();

  // In the order of the file; views that live as long as this.
  const std::vector<Entry>& vocab() const { return vocab_; }
  const std::vector<Merge>& merges() const { return merges_; }
  // The file without these two.
  const nlohmann::json& rest() const { return rest_; }

 private:
  struct Memory;
  class Reader;

  TokenizerJson();

  std::vector<Entry> vocab_;
  std::vector<Merge> merges_;
  nlohmann::json rest_;
  std::unique_ptr<Memory> memory_;  // of the views
};

// A token in quotes, for messages, cut to a readable length.
std::string shown_letters(std::string_view letters);

}  // namespace deltafin::text
