#include "checkpoint/identity.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "base/limits.h"
#include "checkpoint/safetensors.h"

namespace deltafin::checkpoint {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are hashed little-endian");

// Changes when what is hashed does, so that old identities match nothing.
constexpr std::string_view kDomain = "deltafin weak identity 1";
constexpr uint64_t kSampleCount = 4;
constexpr uint64_t kSampleBytes = 16 << 10;
constexpr uint64_t kChunkBytes = 1 << 20;

class Hasher {
 public:
  explicit Hasher(Sha256& sha) : sha_(sha), buffer_(kChunkBytes) {}

  void add(uint64_t number) { sha_.add(std::as_bytes(std::span(&number, 1))); }

  // With its length in front, so that no two lists of texts look the same.
  void add(std::string_view text) {
    add(uint64_t{text.size()});
    sha_.add(std::as_bytes(std::span(text)));
  }

  Status add(const io::File& file, uint64_t begin, uint64_t end) {
    for (uint64_t at = begin; at < end;) {
      const std::span<std::byte> chunk =
          std::span(buffer_).first(std::min<uint64_t>(kChunkBytes, end - at));
      TRY_STATUS(io::read_exactly(file, at, chunk));
      sha_.add(chunk);
      at += chunk.size();
    }
    return {};
  }

 private:
  Sha256& sha_;
  std::vector<std::byte> buffer_;
};

std::string_view name_of(const io::File& file) {
  const std::string_view path = file.path();
  return path.substr(path.find_last_of('/') + 1);
}

Status add_samples(Hasher& hasher, const io::File& file, uint64_t data_begin) {
  const uint64_t data_size = file.size() - data_begin;
  if (data_size <= kSampleCount * kSampleBytes) return hasher.add(file, data_begin, file.size());
  // The last sample ends where the file does. Sizes are far below 2^62.
  const uint64_t span = data_size - kSampleBytes;
  for (uint64_t i = 0; i < kSampleCount; ++i) {
    const uint64_t at = data_begin + span * i / (kSampleCount - 1);
    TRY_STATUS(hasher.add(file, at, at + kSampleBytes));
  }
  return {};
}

Status add_shard(Hasher& hasher, const io::File& file) {
  hasher.add(name_of(file));
  hasher.add(file.size());
  std::array<std::byte, kHeaderLengthBytes> length{};
  TRY_STATUS(io::read_exactly(file, 0, length));
  Result<uint64_t> data_begin = parse_data_begin(length, file.size());
  if (!data_begin) return std::unexpected(std::move(data_begin).error().within(file.path()));
  TRY_STATUS(hasher.add(file, 0, *data_begin));
  return add_samples(hasher, file, *data_begin);
}

}  // namespace

Result<Identity> weak_identity(const io::Storage& storage, const Checkpoint& checkpoint) {
  Sha256 sha;
  Hasher hasher(sha);
  hasher.add(kDomain);
  TRY(const std::string config,
      io::read_text(storage, io::join_path(checkpoint.directory(), "config.json"),
                    limits::kConfigBytes));
  hasher.add(config);
  hasher.add(uint64_t{checkpoint.file_count()});
  // The files of a checkpoint are in the order of their names.
  for (size_t i = 0; i < checkpoint.file_count(); ++i)
    TRY_STATUS(add_shard(hasher, checkpoint.file(static_cast<uint32_t>(i))));
  return Identity{sha.digest()};
}

}  // namespace deltafin::checkpoint
