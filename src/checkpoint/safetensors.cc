#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/checked_math.h"
#include "base/limits.h"

namespace deltafin::checkpoint {
namespace {

namespace ondemand = simdjson::ondemand;

std::unexpected<Error> refuse(std::string what) {
  return fail(ErrorCode::BadModel, std::move(what));
}

std::unexpected<Error> bad_json(simdjson::error_code code) {
  return refuse(fmt::format("the header is not valid JSON: {}", simdjson::error_message(code)));
}

Status check_name(std::string_view name) {
  if (name.size() > limits::kTensorNameBytes) {
    return refuse(fmt::format("a tensor name is {} bytes long, expected at most {}", name.size(),
                              limits::kTensorNameBytes));
  }
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return refuse(fmt::format("a tensor name holds the control character 0x{:02x}",
                                static_cast<unsigned char>(c)));
    }
  }
  return {};
}

// A JSON list of non-negative integers below 2^64, at most `limit` of them.
Result<std::vector<uint64_t>> read_integers(ondemand::value& value, std::string_view field,
                                            size_t limit) {
  ondemand::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) {
    return refuse(fmt::format("{} is not a list", field));
  }
  std::vector<uint64_t> numbers;
  for (simdjson::simdjson_result<ondemand::value> item : list) {
    uint64_t number = 0;
    if (item.get_uint64().get(number) != simdjson::SUCCESS) {
      return refuse(
          fmt::format("{} holds something that is not an integer from 0 to 2^64-1", field));
    }
    if (numbers.size() == limit) {
      return refuse(fmt::format("{} has more than {} numbers", field, limit));
    }
    numbers.push_back(number);
  }
  return numbers;
}

Result<DType> read_dtype(ondemand::value& value) {
  std::string_view text;
  if (value.get_string().get(text) != simdjson::SUCCESS) return refuse("dtype is not a string");
  const std::optional<DType> dtype = parse_dtype(text);
  if (!dtype) {
    return refuse(fmt::format("unknown dtype \"{}\"", text.substr(0, 32)));
  }
  return *dtype;
}

// The three fields of one tensor as they stand, each at most once.
struct RawTensor {
  std::optional<DType> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

Status read_field(std::string_view key, ondemand::value& value, RawTensor& raw) {
  if (key == "dtype" && !raw.dtype) {
    TRY(raw.dtype, read_dtype(value));
  } else if (key == "shape" && !raw.shape) {
    TRY(raw.shape, read_integers(value, "shape", limits::kTensorAxes));
  } else if (key == "data_offsets" && !raw.offsets) {
    TRY(raw.offsets, read_integers(value, "data_offsets", 2));
  } else {
    return refuse(fmt::format(
        "field \"{}\" is unknown or given twice; expected dtype, shape and data_offsets",
        key.substr(0, 32)));
  }
  return {};
}

Result<RawTensor> read_fields(ondemand::value& value) {
  ondemand::object fields;
  if (value.get_object().get(fields) != simdjson::SUCCESS) {
    return refuse("its description is not an object");
  }
  RawTensor raw;
  for (simdjson::simdjson_result<ondemand::field> field : fields) {
    std::string_view key;
    if (const simdjson::error_code code = field.unescaped_key().get(key)) return bad_json(code);
    ondemand::value content;
    if (const simdjson::error_code code = field.value().get(content)) return bad_json(code);
    TRY_STATUS(read_field(key, content, raw));
  }
  if (!raw.dtype) return refuse("dtype is missing");
  if (!raw.shape) return refuse("shape is missing");
  if (!raw.offsets) return refuse("data_offsets is missing");
  if (raw.offsets->size() != 2) return refuse("data_offsets is not a pair [begin, end]");
  return raw;
}

Result<TensorEntry> check_span(std::string_view name, RawTensor raw) {
  TensorEntry entry{.name = std::string(name),
                    .dtype = *raw.dtype,
                    .shape = std::move(*raw.shape),
                    .begin = raw.offsets->front(),
                    .end = raw.offsets->back()};
  if (entry.end < entry.begin) {
    return refuse(
        fmt::format("data_offsets [{}, {}] end before they begin", entry.begin, entry.end));
  }
  const std::optional<uint64_t> elements = checked_product(entry.shape);
  const std::optional<uint64_t> bytes =
      elements ? checked_multiply(*elements, bytes_of(entry.dtype)) : std::nullopt;
  if (!bytes) {
    return refuse(fmt::format("shape {} of {} does not fit into 64 bits",
                              describe_shape(entry.shape), name_of(entry.dtype)));
  }
  if (*bytes != entry.end - entry.begin) {
    return refuse(fmt::format("shape {} of {} takes {} bytes, but data_offsets [{}, {}] hold {}",
                              describe_shape(entry.shape), name_of(entry.dtype), *bytes,
                              entry.begin, entry.end, entry.end - entry.begin));
  }
  return entry;
}

Result<TensorEntry> read_tensor(std::string_view name, ondemand::value& value) {
  TRY(RawTensor raw, read_fields(value));
  return check_span(name, std::move(raw));
}

// Free text about the file, without influence; read only to be sure that it is what it should be.
Status read_metadata(ondemand::value& value) {
  ondemand::object fields;
  if (value.get_object().get(fields) != simdjson::SUCCESS) {
    return refuse("__metadata__ is not an object");
  }
  for (simdjson::simdjson_result<ondemand::field> field : fields) {
    std::string_view text;
    if (const simdjson::error_code code = field.unescaped_key().get(text)) return bad_json(code);
    if (field.value().get_string().get(text) != simdjson::SUCCESS) {
      return refuse("__metadata__ holds something that is not a string");
    }
  }
  return {};
}

Result<std::vector<TensorEntry>> read_tensors(const simdjson::padded_string& json) {
  ondemand::parser parser;
  ondemand::document document;
  if (const simdjson::error_code code = parser.iterate(json).get(document)) return bad_json(code);
  ondemand::object root;
  // It begins with '{', so it is an object or damaged.
  if (const simdjson::error_code code = document.get_object().get(root)) return bad_json(code);
  std::vector<TensorEntry> tensors;
  for (simdjson::simdjson_result<ondemand::field> field : root) {
    std::string_view name;
    if (const simdjson::error_code code = field.unescaped_key().get(name)) return bad_json(code);
    ondemand::value value;
    if (const simdjson::error_code code = field.value().get(value)) return bad_json(code);
    if (name == "__metadata__") {
      TRY_STATUS(read_metadata(value));
      continue;
    }
    TRY_STATUS(check_name(name));
    Result<TensorEntry> tensor = read_tensor(name, value);
    if (!tensor) {
      return std::unexpected(std::move(tensor).error().within(fmt::format("tensor {}", name)));
    }
    tensors.push_back(std::move(*tensor));
  }
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS) {
    return refuse("the header goes on after its closing brace");
  }
  return tensors;
}

Status check_names_differ(const std::vector<TensorEntry>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorEntry& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end()) return refuse(fmt::format("tensor {} is described twice", *twin));
  return {};
}

// `tensors` by rising (begin, end), so that an empty tensor precedes the one that begins where it
// lies. Returns the size of the data section.
Result<uint64_t> check_tiling(const std::vector<TensorEntry>& tensors) {
  uint64_t covered = 0;
  const TensorEntry* previous = nullptr;
  for (const TensorEntry& tensor : tensors) {
    if (tensor.begin < covered) {
      return refuse(fmt::format("tensor {} at [{}, {}] overlaps tensor {} at [{}, {}]", tensor.name,
                                tensor.begin, tensor.end, previous->name, previous->begin,
                                previous->end));
    }
    if (tensor.begin > covered) {
      return refuse(fmt::format("{} bytes at [{}, {}] before tensor {} belong to no tensor",
                                tensor.begin - covered, covered, tensor.begin, tensor.name));
    }
    covered = tensor.end;
    previous = &tensor;
  }
  return covered;
}

}  // namespace

Result<uint64_t> parse_data_begin(std::span<const std::byte> bytes, uint64_t file_size) {
  if (file_size < kHeaderLengthBytes || bytes.size() < kHeaderLengthBytes) {
    return refuse(fmt::format(
        "the file has {} bytes, expected at least {}: looks like an interrupted download",
        std::min<uint64_t>(file_size, bytes.size()), kHeaderLengthBytes));
  }
  uint64_t length = 0;
  for (size_t i = kHeaderLengthBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<uint64_t>(bytes[i]);
  }
  if (length > limits::kSafetensorsHeaderBytes) {
    return refuse(fmt::format(
        "the header claims to be {} bytes long, expected at most {}: not a safetensors file",
        length, limits::kSafetensorsHeaderBytes));
  }
  if (length > file_size - kHeaderLengthBytes) {
    return refuse(
        fmt::format("the header claims to be {} bytes long, but only {} bytes follow: looks like "
                    "an interrupted "
                    "download",
                    length, file_size - kHeaderLengthBytes));
  }
  return kHeaderLengthBytes + length;
}

Result<Header> parse_header(std::span<const std::byte> bytes, uint64_t file_size) {
  Header header;
  TRY(header.data_begin, parse_data_begin(bytes, file_size));
  if (bytes.size() < header.data_begin) {
    return refuse(
        fmt::format("the header is cut off after {} of {} bytes", bytes.size(), header.data_begin));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kHeaderLengthBytes,
                              header.data_begin - kHeaderLengthBytes);
  if (text.empty() || text.front() != '{') {
    return refuse(fmt::format("the header of {} bytes does not begin with '{{'", text.size()));
  }
  TRY(header.tensors, read_tensors(simdjson::padded_string(text)));
  TRY_STATUS(check_names_differ(header.tensors));
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const TensorEntry& a, const TensorEntry& b) {
              return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
            });
  TRY(header.data_size, check_tiling(header.tensors));
  return header;
}

Status check_file_size(const Header& header, uint64_t file_size) {
  // parse_header has seen data_begin inside the file.
  const uint64_t held = file_size - header.data_begin;
  if (held < header.data_size) {
    return refuse(fmt::format(
        "the file is {} bytes shorter than its header says: looks like an interrupted download",
        header.data_size - held));
  }
  if (held > header.data_size) {
    return refuse(
        fmt::format("the file goes on for {} bytes after its last tensor; expected it to end at {}",
                    held - header.data_size, header.data_begin + header.data_size));
  }
  return {};
}

}  // namespace deltafin::checkpoint
