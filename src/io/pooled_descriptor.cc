#include "io/pooled_descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "io/os_error.h"

namespace deltafin::io {

Descriptor::~Descriptor() {
  if (is_open()) ::close(number_);
}

// The limit is the process's, and so is the pool.
class DescriptorPool {
 public:
  static DescriptorPool& instance() {
    static DescriptorPool pool;
    return pool;
  }

  void add(const PooledDescriptor& seat, Descriptor descriptor) {
    const std::lock_guard lock(mutex_);
    take(seat, std::make_shared<const Descriptor>(std::move(descriptor)));
  }

  void remove(const PooledDescriptor& seat) {
    const std::lock_guard lock(mutex_);
    close(seat);
  }

  Result<PooledDescriptor::Handle> get(const PooledDescriptor& seat) {
    const std::lock_guard lock(mutex_);
    if (seat.open_ != nullptr) {
      order_.splice(order_.begin(), order_, seat.position_);
      return seat.open_;
    }
    make_room(1);
    int number = -1;
    do {
      number = ::open(seat.path_.c_str(), O_RDONLY | O_CLOEXEC | seat.flags_);
    } while (number < 0 && errno == EINTR);
    if (number < 0)
      return fail(ErrorCode::Io,
                  fmt::format("{}: cannot open it again: {}", seat.path_, os_error(errno)));
    Descriptor descriptor(number);
    // Whoever replaced the file under its name since must not change what we read.
    struct stat info = {};
    if (::fstat(number, &info) != 0 || info.st_dev != seat.device_ || info.st_ino != seat.inode_)
      return fail(ErrorCode::Io, fmt::format("{}: another file has taken its place since it was "
                                             "opened: start again",
                                             seat.path_));
    take(seat, std::make_shared<const Descriptor>(std::move(descriptor)));
    return seat.open_;
  }

 private:
  static size_t capacity() {
    constexpr uint64_t kLeast = 8, kMost = 4096;
    struct rlimit limit = {};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < kDescriptorsLeft + kLeast)
      return kLeast;
    return std::min<uint64_t>(limit.rlim_cur - kDescriptorsLeft, kMost);
  }

  void make_room(size_t count) {
    while (!order_.empty() && order_.size() + count > capacity()) close(*order_.back());
  }

  void take(const PooledDescriptor& seat, PooledDescriptor::Handle handle) {
    make_room(1);
    seat.open_ = std::move(handle);
    seat.position_ = order_.insert(order_.begin(), &seat);
  }

  void close(const PooledDescriptor& seat) {
    if (seat.open_ == nullptr) return;
    order_.erase(seat.position_);
    seat.open_.reset();
  }

  std::mutex mutex_;
  std::list<const PooledDescriptor*> order_;  // open ones, the last used first
};

PooledDescriptor::PooledDescriptor(std::string path, int flags, Descriptor first)
    : path_(std::move(path)), flags_(flags) {
  struct stat info = {};
  if (::fstat(first.get(), &info) == 0) {
    device_ = info.st_dev;
    inode_ = info.st_ino;
  }
  DescriptorPool::instance().add(*this, std::move(first));
}

PooledDescriptor::~PooledDescriptor() { DescriptorPool::instance().remove(*this); }

Result<PooledDescriptor::Handle> PooledDescriptor::get() const {
  return DescriptorPool::instance().get(*this);
}

}  // namespace deltafin::io
