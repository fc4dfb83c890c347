// A simulated disk for tests: files in memory or taken from a real storage, faults and delays drawn
// from one seed. A test that fails prints its seed, and the seed replays it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/file.h"
#include "io/reader.h"

namespace deltafin::io {

enum class FaultKind : uint8_t {
  Eio,        // the read fails with an input/output error
  ShortRead,  // the read stops early: at a range fault where the range begins, else anywhere
};

enum class FaultDuration : uint8_t {
  Transient,  // the next try of the same read succeeds; a later visit may meet the fault again
  Permanent,
};

// A bad stretch of a file. `file` is a whole path or its end behind a slash
// ("model-1.safetensors").
struct RangeFault {
  std::string file = {};
  uint64_t offset = 0;
  uint64_t size = 0;
  FaultKind kind = FaultKind::Eio;
  FaultDuration duration = FaultDuration::Permanent;
};

// A file that is shorter than it was when it was opened.
struct Truncation {
  std::string file = {};  // as in RangeFault
  uint64_t size = 0;
};

// What goes wrong. Random faults are a pure function of (seed, file name, offset, how often the
// offset was read before), so they depend neither on the order of reads nor on the folder a
// checkout lies in.
struct FaultPlan {
  uint64_t seed = 0;
  std::vector<RangeFault> ranges = {};
  std::vector<Truncation> truncations = {};
  float eio_probability = 0;         // of each read
  float short_read_probability = 0;  // of each read
  FaultDuration random_duration = FaultDuration::Transient;
};

struct SimulatedStorageCounters {
  uint64_t reads = 0;
  uint64_t faults = 0;  // reads that failed or were cut short by the plan
};

// Thread-safe. Files stay readable after the storage is gone, if the storage below lives.
class SimulatedStorage final : public Storage {
 public:
  SimulatedStorage();  // holds nothing but what add_file() puts in
  // Also shows everything of `below`, which must outlive this and its files. An added file hides
  // the one below.
  explicit SimulatedStorage(const Storage& below);
  SimulatedStorage(const SimulatedStorage&) = delete;
  SimulatedStorage& operator=(const SimulatedStorage&) = delete;
  ~SimulatedStorage() override;

  // Adds or replaces a file; its folders exist by that. Files open now keep their old bytes.
  void add_file(const std::string& path, std::vector<std::byte> bytes);
  void add_file(const std::string& path, const std::string& text);
  // In force at once, for files already open too. FaultPlan{} heals the disk.
  void set_faults(FaultPlan plan);
  SimulatedStorageCounters snapshot() const;

  Result<std::unique_ptr<File>> open(const std::string& path) const override;
  Result<std::vector<DirectoryEntry>> list(const std::string& path) const override;
  bool exists(const std::string& path) const override;
  bool is_directory(const std::string& path) const override;

 private:
  struct Disk;

  const Storage* below_;  // may be null
  std::shared_ptr<Disk> disk_;
};

struct SimulatedReaderOptions {
  uint64_t seed = 0;
  std::chrono::nanoseconds delay_min = std::chrono::microseconds(50);
  std::chrono::nanoseconds delay_max = std::chrono::milliseconds(5);
  size_t in_flight_count = 4;
  uint64_t in_flight_bytes = 64ull << 20;  // one larger request may run alone
};

// A reader without threads, for one thread: its channels, its clock and its files are all used by
// the thread that made it, and the same calls with the same seed give the same completions in the
// same order at the same simulated times.
//
// Priorities, bounds, tries and cancel() are those of the thread reader. Every started read
// finishes after a delay drawn from the seed. wait() advances the clock to the next finish until
// its channel has a completion. poll() advances it by a drawn step of at most half of delay_max,
// the time a caller computed between two polls. A buffer holds 0xFF bytes (NaN in F32, BF16 and
// E8M0) from its start to its finish and after an error, so a caller that looks too early computes
// visibly wrong numbers, and the same ones in every run.
std::unique_ptr<Reader> make_simulated_reader(const SimulatedReaderOptions& options,
                                              SimulatedClock& clock);

}  // namespace deltafin::io
