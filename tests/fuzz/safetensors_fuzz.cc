// The header of a shard, and the length of the file behind it.
#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deltafin::checkpoint;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  const deltafin::Result<Header> header = parse_header(bytes, size);
  if (!header || !check_file_size(*header, size)) return 0;
  uint64_t at = 0;
  for (const TensorEntry& tensor : header->tensors) {
    if (tensor.begin != at || tensor.end > size) __builtin_trap();  // spans must tile the file
    at = tensor.end;
  }
  return 0;
}
