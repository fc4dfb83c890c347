// Typed reading of one JSON object of a config, with a record of what has been read, so that no
// field can be overlooked: what nobody asked for is left over and reported.
//
// Every message names the field in full, what was found, and what was expected:
//   text_config.num_experts: found -1, expected an integer from 1 to 65536
// A field that is null counts as absent.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace deltafin::checkpoint {

struct IntegerRange {
  uint64_t least = 0;
  uint64_t most = 0;
};

struct RealRange {
  double least = 0;  // both ends are allowed
  double most = 0;
};

// More names of fields, behind others.
inline void append(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

enum class Presence : uint8_t { Required, Optional };

// A field that has one admissible value, because we compute what that value means and nothing else.
struct FixedField {
  const char* name;
  const char* value;  // as JSON text: "false", "null", "\"noaux_tc\""
  Presence presence;
  const char* reason;  // shown with the refusal
};

class Fields {
 public:
  // `object` must be a JSON object and outlive this. `place` goes in front of every name:
  // "text_config.", or "" for the root.
  Fields(const nlohmann::json& object, std::string place)
      : object_(&object), place_(std::move(place)) {}

  // Errors of all of these: BadModel. Integers must be written as integers (16, not 16.0); reals
  // are rounded to f32 once, numbers are not.
  Result<uint64_t> integer(const char* name, IntegerRange range);
  Result<std::optional<uint64_t>> optional_integer(const char* name, IntegerRange range);
  Result<std::optional<double>> optional_number(const char* name, RealRange range);
  Result<std::optional<float>> optional_real(const char* name, RealRange range);
  Result<float> real(const char* name, RealRange range);
  Result<std::optional<bool>> optional_flag(const char* name);
  Result<std::string> word(const char* name);
  Result<std::vector<uint64_t>> integers(const char* name, IntegerRange range, size_t most);
  // The object under `name`; empty when it is absent.
  Result<std::optional<Fields>> optional_object(const char* name);
  Result<Fields> object(const char* name);

  Status must_equal(const FixedField& field);
  Status must_equal(std::span<const FixedField> table);
  void ignore(const char* name) { read_.insert(name); }

  // The value, or nullptr when the field is absent or null. Marks the field as read.
  const nlohmann::json* find(const char* name);
  // "text_config.num_experts"
  std::string full_name(const char* name) const { return place_ + name; }
  // `found` as it stands in the file, cut to a readable length.
  std::unexpected<Error> refuse(const char* name, const nlohmann::json* found,
                                const std::string& expected) const;
  std::unexpected<Error> refuse(const char* name, const std::string& expected) const;

  // Full names of the fields that nobody asked for.
  std::vector<std::string> unread() const;

 private:
  const nlohmann::json* object_;
  std::string place_;
  std::set<std::string> read_;
};

// A size that goes into a family's configuration as it stands.
template <class Config>
struct CountField {
  const char* name;
  uint32_t Config::* into;
  uint64_t most;  // below 2^32; the least is 1
};

template <class Config>
Status read_counts(std::span<const CountField<Config>> table, Fields& fields, Config& config) {
  for (const CountField<Config>& field : table) {
    TRY(const uint64_t value, fields.integer(field.name, {1, field.most}));
    config.*field.into = static_cast<uint32_t>(value);
  }
  return {};
}

}  // namespace deltafin::checkpoint
