// A saved state, as it is and with its checksums made right, so that what lies behind them is
// reached. The corpus holds states of state/test_snapshot.h.
#include "io/simulated.h"
#include "state/test_snapshot.h"

namespace {

using namespace deltafin;

void read(const std::vector<std::byte>& bytes) {
  static const state::Layout layout = state::test::mixed_layout();
  io::SimulatedStorage storage;
  storage.add_file("/f", bytes);
  const Result<std::unique_ptr<io::File>> file = storage.open("/f");
  const CancelToken never;
  const Result<state::Snapshot> snapshot =
      state::read_snapshot(**file, state::test::owner(), layout, never);
  if (!snapshot) return;
  // What was accepted is written as the same bytes.
  const std::vector<std::byte> again = state::test::bytes_of({.state = snapshot->state,
                                                              .tokens = snapshot->tokens,
                                                              .waiting = snapshot->waiting,
                                                              .logits = snapshot->logits});
  if (again != bytes) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  std::vector<std::byte> bytes(input.begin(), input.end());
  read(bytes);
  state::test::seal(bytes);
  read(bytes);
  return 0;
}
