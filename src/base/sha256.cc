#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/check.h"

namespace deltafin {

struct Sha256::Context {
  EVP_MD_CTX* sha = EVP_MD_CTX_new();
  Context() { CHECK(sha != nullptr); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(sha); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  CHECK(EVP_DigestInit_ex(context_->sha, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  CHECK(EVP_DigestUpdate(context_->sha, bytes.data(), bytes.size()) == 1);
}

Sha256Digest Sha256::digest() const {
  const Context copy;
  CHECK(EVP_MD_CTX_copy_ex(copy.sha, context_->sha) == 1);
  Sha256Digest digest{};
  unsigned int size = 0;
  CHECK(EVP_DigestFinal_ex(copy.sha, reinterpret_cast<unsigned char*>(digest.data()), &size) == 1);
  CHECK(size == digest.size());
  return digest;
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

}  // namespace deltafin
