// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>

#include "base/assert.h"
#include "crypto/secure_memory.h"
#include "varve/encryption.h"

namespace varve {

Result<Secret> Secret::copy_of(std::span<const std::byte> bytes) {
  return fill_with(bytes.size(), [&](std::span<std::byte> out) -> Result<std::size_t> {
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return bytes.size();
  });
}

Result<Secret> Secret::fill_with(
    std::size_t bytes_max, const std::function<Result<std::size_t>(std::span<std::byte>)>& fill) {
  if (bytes_max > kBytesMax) {
    return Error(ErrorCode::kTooLarge, fmt::format("a key has at most {} bytes", kBytesMax));
  }
  Secret secret;
  if (bytes_max == 0) return secret;
  VARVE_TRY_ASSIGN(secret.bytes_, crypto::allocate_secure(bytes_max));
  VARVE_TRY_ASSIGN(secret.size_, fill({secret.bytes_.get(), bytes_max}));
  VARVE_ASSERT(secret.size_ <= bytes_max);
  return secret;
}

}  // namespace varve
