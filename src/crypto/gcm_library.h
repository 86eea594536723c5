// SPDX-License-Identifier: Apache-2.0
// AES-256-GCM by Intel's Multi-Buffer Crypto library (libIPSec_MB), which has code for more
// processors than OpenSSL 3.0, and a lower cost per text. docs/decisions/114.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "crypto/aead.h"

namespace varve::crypto {

/// A key expanded by the library, in ordinary memory. The destructor wipes the key. Immutable, and
/// thread-safe, also in the child of a fork.
class GcmKey {
 public:
  /// Returns null without the library, or if the processor lacks AES instructions.
  [[nodiscard]] static std::unique_ptr<const GcmKey> expand(const SecretKey& key);

  GcmKey(const GcmKey&) = delete;
  GcmKey& operator=(const GcmKey&) = delete;
  ~GcmKey();

  /// Encrypts `text` in place, and returns the tag.
  [[nodiscard]] Tag seal(const Nonce& nonce, std::span<const std::byte> associated,
                         std::span<std::byte> text) const;
  /// Decrypts `sealed`, which may be `out` itself, and returns the expected tag; nullopt if the
  /// library computed no tag. The caller compares the tags, and wipes `out` if the tags differ.
  [[nodiscard]] std::optional<Tag> open(const Nonce& nonce, std::span<const std::byte> associated,
                                        const std::byte* sealed, std::span<std::byte> out) const;

 private:
  friend class GcmStream;
  struct Expanded;
  explicit GcmKey(std::unique_ptr<Expanded> expanded);

  const std::unique_ptr<Expanded> expanded_;
};

/// Decrypts one text in pieces, without authentication. Not thread-safe.
/// Lifetime: the key outlives the stream.
class GcmStream {
 public:
  GcmStream(const GcmKey& key, const Nonce& nonce);
  GcmStream(const GcmStream&) = delete;
  GcmStream& operator=(const GcmStream&) = delete;
  ~GcmStream();

  /// Decrypts the next piece to `out`, of the same length.
  void decrypt(std::span<const std::byte> sealed, std::span<std::byte> out) const;

 private:
  struct State;
  [[maybe_unused]] const GcmKey& key_;  // Unused without the library.
  const std::unique_ptr<State> state_;
};

/// Keeps keys expanded from now on away from the library, or ends the avoidance. Only for tests
/// that count OpenSSL's calls or compare both implementations.
void avoid_gcm_library(bool avoid);

}  // namespace varve::crypto
