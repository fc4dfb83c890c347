// The header of a safetensors file: which tensors it holds, and where their bytes lie.
//
//   offset 0   u64, little endian: N, the length of the header
//   offset 8   N bytes of JSON: {"name": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0,
//   12]},
//              ..., "__metadata__": {"text": "text"}}, possibly followed by spaces
//   offset 8+N the data section, into which data_offsets point: [begin, end)
//
// The spans must tile the data section: no overlap, no hole, and no byte after the last one. That
// is the rule of the format's own library; why we keep it is in
// docs/decisions/0002-trailing-bytes.md. Spans may begin anywhere: the published K3 shards are not
// aligned to the size of their elements.
//
// Pure functions: no I/O, and nothing is allocated that the header itself does not pay for.
// Messages name the tensor; the caller puts the file in front.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/tensor.h"

namespace deltafin::checkpoint {

struct TensorEntry {
  std::string name;  // no control characters, at most limits::kTensorNameBytes
  DType dtype = DType::U8;
  std::vector<uint64_t> shape;
  uint64_t begin = 0;  // bytes from Header::data_begin
  uint64_t end = 0;    // begin + elements x bytes per element
};

struct Header {
  uint64_t data_begin = 0;           // where the data section starts in the file
  uint64_t data_size = 0;            // bytes that the spans cover
  std::vector<TensorEntry> tensors;  // by rising begin
};

inline constexpr size_t kHeaderLengthBytes = 8;

// Where the data section starts, from the first eight bytes of a file of `file_size` bytes: how
// much to read before parse_header. Errors: BadModel, when the header would not fit into the file
// or is absurdly long.
Result<uint64_t> parse_data_begin(std::span<const std::byte> bytes, uint64_t file_size);

// `bytes` starts at the beginning of the file and reaches at least to the data section; what
// follows is not looked at. Whether the file is long enough is a separate question
// (check_file_size), so that a survey can tell which tensors of a cut file are whole. Errors:
// BadModel.
Result<Header> parse_header(std::span<const std::byte> bytes, uint64_t file_size);

// The file must end exactly where the last tensor does. Errors: BadModel.
Status check_file_size(const Header& header, uint64_t file_size);

}  // namespace deltafin::checkpoint
