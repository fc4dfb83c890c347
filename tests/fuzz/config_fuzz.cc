// config.json, through to the tensor list of the model that it describes.
#include "checkpoint/config.h"
#include "checkpoint/inventory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deltafin::checkpoint;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const deltafin::Result<ModelContract> contract = parse_config(text);
  if (!contract) return contract.error().what.empty() ? (__builtin_trap(), 0) : 0;
  const Inventory inventory = take_inventory(*contract);
  if (inventory.total_bytes() == 0) __builtin_trap();
  return 0;
}
