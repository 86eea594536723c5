// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "crypto/key_ring.h"
#include "format/container_keys.h"
#include "format/frame_codec.h"
#include "support/temp_repository.h"

namespace varve::test {

inline const std::string kTestRepositoryId = "0123456789abcdef0123456789abcdef";

/// Returns the keys of a repository whose master key is a byte, repeated.
inline std::shared_ptr<const crypto::KeyRing> test_keys(
    std::uint8_t master = 7, const std::string& repository_id = kTestRepositoryId,
    crypto::Cipher cipher = crypto::Cipher::kAes256Gcm) {
  std::array<std::byte, crypto::kKeyBytes> bytes{};
  bytes.fill(std::byte{master});
  return must(
      crypto::KeyRing::make(must(crypto::SecretKey::copy_of(bytes)), repository_id, cipher));
}

/// Returns a source of salts that count from 1, for bytes that are the same in each run.
inline format::ContainerKeys::SaltSource counting_salts() {
  return [n = std::uint8_t{0}]() mutable {
    crypto::Salt salt{};
    salt.fill(std::byte{++n});
    return Result<crypto::Salt>(salt);
  };
}

/// Returns the codec of an encrypted repository.
inline std::unique_ptr<const format::FrameCodec> sealed_codec(
    const format::Compression& compression = {},
    std::shared_ptr<const crypto::KeyRing> ring = test_keys(),
    format::ContainerKeys::SaltSource salts = nullptr) {
  return format::make_sealed_frame_codec(compression, std::make_unique<const format::ContainerKeys>(
                                                          std::move(ring), std::move(salts)));
}

/// Returns the codec of an encrypted repository for an odd seed, of a plain one for an even seed.
inline std::unique_ptr<const format::FrameCodec> codec_of_seed(
    std::uint64_t seed, const format::Compression& compression = {}) {
  return seed % 2 == 1 ? sealed_codec(compression) : format::make_plain_frame_codec(compression);
}

}  // namespace varve::test
