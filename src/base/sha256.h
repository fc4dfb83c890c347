// SHA-256, by OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace deltafin {

using Sha256Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void add(std::span<const std::byte> bytes);
  // Of everything added so far; more may follow.
  Sha256Digest digest() const;

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Lower-case hexadecimal.
std::string to_hex(std::span<const std::byte> bytes);

}  // namespace deltafin
