#include "checkpoint/tensor.h"

#include <array>

#include "base/check.h"

namespace deltafin::checkpoint {
namespace {

struct DTypeRow {
  DType dtype;
  const char* name;  // as headers spell it
  uint64_t bytes;
};

constexpr std::array kDTypes = {
    DTypeRow{DType::F64, "F64", 8},        DTypeRow{DType::F32, "F32", 4},
    DTypeRow{DType::F16, "F16", 2},        DTypeRow{DType::BF16, "BF16", 2},
    DTypeRow{DType::I64, "I64", 8},        DTypeRow{DType::I32, "I32", 4},
    DTypeRow{DType::I16, "I16", 2},        DTypeRow{DType::I8, "I8", 1},
    DTypeRow{DType::U64, "U64", 8},        DTypeRow{DType::U32, "U32", 4},
    DTypeRow{DType::U16, "U16", 2},        DTypeRow{DType::U8, "U8", 1},
    DTypeRow{DType::Bool, "BOOL", 1},      DTypeRow{DType::F8E4M3, "F8_E4M3", 1},
    DTypeRow{DType::F8E5M2, "F8_E5M2", 1},
};

const DTypeRow& row_of(DType dtype) {
  const DTypeRow& row = kDTypes[static_cast<size_t>(dtype)];
  CHECK(row.dtype == dtype);  // the table is in the order of the enum
  return row;
}

}  // namespace

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeRow& row : kDTypes) {
    if (name == row.name) return row.dtype;
  }
  return std::nullopt;
}

const char* name_of(DType dtype) { return row_of(dtype).name; }

uint64_t bytes_of(DType dtype) { return row_of(dtype).bytes; }

std::string describe_shape(std::span<const uint64_t> shape) {
  std::string text = "[";
  for (const uint64_t axis : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(axis);
  }
  text += "]";
  return text;
}

}  // namespace deltafin::checkpoint
