// SPDX-License-Identifier: Apache-2.0
// The keys of an encrypted repository's containers. docs/FORMAT.md §14.2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "crypto/aead.h"
#include "crypto/key_ring.h"
#include "varve/result.h"

namespace varve::format {

/// The fields of sealed containers only.
struct ContainerSeal {
  crypto::Salt salt{};            ///< Determines the container's key.
  std::uint32_t total_bytes = 0;  ///< Length of the whole container, padding included.
  bool operator==(const ContainerSeal&) const = default;
};

/// A part of a sealed container with its own tag. A part opens only as the same part of the same
/// container.
struct ContainerPart {
  static constexpr std::uint32_t kHeader = 0xffffffff;   ///< Directory, id runs and chunk table.
  static constexpr std::uint32_t kCounts = 0xfffffffe;   ///< Fields of the fixed header.
  static constexpr std::uint32_t kPadding = 0xfffffffd;  ///< Zeros behind the data.

  StoreId store{};
  ContainerNumber number{};
  std::uint32_t features = 0;  ///< The container's feature flags.
  ContainerSeal seal{};
  std::uint32_t index = 0;  ///< Index of a frame, or kHeader, kCounts or kPadding.
  /// An associated value, which must be unchanged for open(): the raw bytes of a frame; for
  /// kCounts, the checksum of the container behind the fixed header; otherwise 0.
  std::uint64_t bound = 0;
};

/// The key of one container. Immutable and thread-safe.
class ContainerKey {
 public:
  ContainerKey(crypto::Aead aead, std::shared_ptr<const crypto::KeyRing> ring)
      : aead_(std::move(aead)), ring_(std::move(ring)) {}

  /// Encrypts a part in place and returns its tag. The caller seals each part of a container once.
  [[nodiscard]] crypto::Tag seal(const ContainerPart& part, std::span<std::byte> text) const;
  /// Decrypts a part from `sealed` to `out`, of the same length and without overlap.
  /// Errors: kCorrupt for a damaged or a different part; `out` is then zero.
  [[nodiscard]] Result<void> open(const ContainerPart& part, std::span<const std::byte> sealed,
                                  const crypto::Tag& tag, std::span<std::byte> out) const;
  /// Returns whether `sealed` is the result of seal() for zeros, as the part `index`.
  [[nodiscard]] bool is_sealed_zeros(std::uint32_t index, std::span<const std::byte> sealed) const {
    return aead_.is_sealed_zeros(crypto::nonce_of(index), sealed);
  }

 private:
  [[nodiscard]] std::string associated_data(const ContainerPart& part) const;

  crypto::Aead aead_;
  std::shared_ptr<const crypto::KeyRing> ring_;
};

/// Derives the keys of containers. Thread-safe. Caches the most recently used keys, because
/// deriving a key takes about as long as decrypting 16 KiB.
class ContainerKeys {
 public:
  using SaltSource = std::function<Result<crypto::Salt>()>;

  /// `salts` returns a unique salt for each new container: only for tests, to make containers with
  /// the same bytes in each run.
  explicit ContainerKeys(std::shared_ptr<const crypto::KeyRing> ring, SaltSource salts = nullptr)
      : ring_(std::move(ring)), salts_(std::move(salts)) {}

  /// Returns the salt of a new container. `place` and `content` determine all bytes of the salt, so
  /// different containers have different salts even if the random bytes repeat.
  /// Errors: kIo without random bytes.
  [[nodiscard]] Result<crypto::Salt> new_salt(std::span<const std::byte> place,
                                              std::span<const std::byte> content) const {
    return salts_ ? salts_() : ring_->nonces().new_salt(place, content);
  }
  /// Returns the key of the container with `salt`. Errors: kIo without memory.
  [[nodiscard]] Result<ContainerKey> key_of(const crypto::Salt& salt) const;

 private:
  using Known = std::pair<crypto::Salt, ContainerKey>;
  static constexpr std::size_t kKnownMax = 64;

  [[nodiscard]] std::optional<ContainerKey> find(const crypto::Salt& salt) const;

  const std::shared_ptr<const crypto::KeyRing> ring_;
  const SaltSource salts_;
  mutable std::mutex mutex_;          // Innermost. Guards known_.
  mutable std::vector<Known> known_;  // Most recently used last.
};

}  // namespace varve::format
