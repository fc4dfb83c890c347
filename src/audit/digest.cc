#include "audit/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <bit>

#include "base/check.h"

namespace deltafin::audit {

static_assert(std::endian::native == std::endian::little,
              "the digest is over little-endian floats");

struct LogitsDigest::Context {
  EVP_MD_CTX* sha = EVP_MD_CTX_new();
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(sha); }
};

LogitsDigest::LogitsDigest() : context_(std::make_unique<Context>()) {
  CHECK(context_->sha != nullptr);
  CHECK(EVP_DigestInit_ex(context_->sha, EVP_sha256(), nullptr) == 1);
}

LogitsDigest::~LogitsDigest() = default;

void LogitsDigest::add(std::span<const float> logits) {
  CHECK(EVP_DigestUpdate(context_->sha, logits.data(), logits.size_bytes()) == 1);
  ++row_count_;
}

std::string LogitsDigest::hex() const {
  const Context copy;
  CHECK(EVP_MD_CTX_copy_ex(copy.sha, context_->sha) == 1);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  CHECK(EVP_DigestFinal_ex(copy.sha, digest.data(), &size) == 1);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace deltafin::audit
