// model.safetensors.index.json: no name in it may lead out of the checkpoint's folder.
#include "checkpoint/index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deltafin::checkpoint;
  const deltafin::Result<Index> index =
      Index::parse(std::string(reinterpret_cast<const char*>(data), size));
  if (!index) return 0;
  size_t count = 0;
  for (uint32_t shard = 0; shard < index->shards().size(); ++shard) {
    if (!is_plain_file_name(index->shards()[shard])) __builtin_trap();
    for (const Index::Entry& entry : index->entries_of(shard)) {
      if (index->name(entry).size() > size) __builtin_trap();
      ++count;
    }
  }
  if (count != index->tensor_count()) __builtin_trap();
  return 0;
}
