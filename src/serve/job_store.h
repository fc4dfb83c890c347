// The answers of the last while, by the id of their request: those that still grow, and finished
// ones for a client that comes back. With a folder, finished ones survive a restart.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "serve/job.h"

namespace deltafin::serve {

struct JobStoreOptions {
  std::chrono::seconds keep{900};        // a finished answer in memory
  uint64_t memory_bytes = 64ull << 20;   // of finished answers at most; the oldest go first
  std::optional<std::string> directory;  // for finished answers; must exist
  uint64_t disk_bytes = 256ull << 20;    // in the folder at most
};

// Who chose the id of a request. One that we made is in the answer, so that no client can have
// meant to come back for it after a restart: its answer is kept in memory alone.
enum class IdFrom : uint8_t { Client, Server };

// Thread-safe.
class JobStore {
 public:
  JobStore(JobStoreOptions options, const Clock& clock);

  // Null: there is one of that id already.
  std::shared_ptr<Job> create(const std::string& id, IdFrom id_from, AnswerForm form);
  // One that never began, and has no answer worth keeping.
  void forget(const std::string& id);
  // Null: nobody knows it, or any more.
  std::shared_ptr<Job> find(const std::string& id);
  // The job has ended. To the disk where there is a folder, before its place in memory may be
  // taken; a disk that fails changes nothing else. Once for each job.
  void keep(const std::shared_ptr<Job>& job);

  // Jobs that have not ended, whether or not keep() was told.
  size_t open_count() const;
  // Of finished answers in memory.
  uint64_t kept_bytes() const;
  // Why the answer that was to be written last is not on disk; empty: it is.
  std::string disk_problem() const;

 private:
  struct Entry {
    std::shared_ptr<Job> job;
    IdFrom id_from = IdFrom::Client;
    std::chrono::nanoseconds ended{0};
    uint64_t bytes = 0;
    uint64_t number = 0;  // in the order of their ends; 0: not kept yet
  };

  void forget_old();
  std::string file_of(const std::string& id) const;
  Status write(const FinishedAnswer& answer) const;
  std::optional<FinishedAnswer> read(const std::string& id) const;
  void make_room_on_disk() const;

  JobStoreOptions options_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Entry> entries_;
  uint64_t bytes_ = 0, ends_ = 0;
  std::string disk_problem_;
};

}  // namespace deltafin::serve
