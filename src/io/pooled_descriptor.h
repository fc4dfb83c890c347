// Descriptors of files that are read. A model may have more shards than a process may have
// descriptors, so those that nobody has used for longest are closed, and opened again when they are
// wanted.
#pragma once

#include <sys/types.h>

#include <list>
#include <memory>
#include <string>

#include "base/result.h"
#include "io/descriptor.h"

namespace deltafin::io {

// Descriptors below the limit that are left to everybody else.
inline constexpr uint64_t kDescriptorsLeft = 16;

// Of one file, opened in one way. Thread-safe. Whoever holds what get() gives keeps it open.
class PooledDescriptor {
 public:
  using Handle = std::shared_ptr<const Descriptor>;

  // `flags` beside O_RDONLY and O_CLOEXEC. `first` is open already.
  PooledDescriptor(std::string path, int flags, Descriptor first);
  ~PooledDescriptor();
  PooledDescriptor(const PooledDescriptor&) = delete;
  PooledDescriptor& operator=(const PooledDescriptor&) = delete;

  // Errors: Io, when the file is gone, or another one has its name.
  Result<Handle> get() const;

 private:
  friend class DescriptorPool;
  const std::string path_;
  const int flags_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  // Guarded by the pool.
  mutable Handle open_;
  mutable std::list<const PooledDescriptor*>::iterator position_;  // while it is open
};

}  // namespace deltafin::io
