// SPDX-License-Identifier: Apache-2.0
// AES-256-GCM by Intel's Multi-Buffer Crypto library (libIPSec_MB), which has code for more
// processors than OpenSSL 3.0, and less to do for each text. docs/decisions/114.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "crypto/aead.h"

namespace varve::crypto {

/// A key that the library has expanded, in ordinary memory. Its destructor wipes it. Immutable, and
/// thread-safe, also in the child of a fork.
class GcmKey {
 public:
  /// Returns null without the library, or if the processor lacks AES instructions.
  [[nodiscard]] static std::unique_ptr<const GcmKey> expand(const SecretKey& key);

  GcmKey(const GcmKey&) = delete;
  GcmKey& operator=(const GcmKey&) = delete;
  ~GcmKey();

  /// Encrypts `text` in place, and returns its tag.
  [[nodiscard]] Tag seal(const Nonce& nonce, std::span<const std::byte> associated,
                         std::span<std::byte> text) const;
  /// Decrypts `sealed`, which may be `out` itself, and returns the tag that it should have; nullopt
  /// if the library computed none. The caller compares this tag, and wipes `out` if it differs.
  [[nodiscard]] std::optional<Tag> open(const Nonce& nonce, std::span<const std::byte> associated,
                                        const std::byte* sealed, std::span<std::byte> out) const;

 private:
  friend class GcmStream;
  struct Expanded;
  explicit GcmKey(std::unique_ptr<Expanded> expanded);

  const std::unique_ptr<Expanded> expanded_;
};

/// Decrypts one text in pieces, without authenticating it. Not thread-safe.
/// Lifetime: the key outlives it.
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
  [[maybe_unused]] const GcmKey& key_;  // Without the library, nothing uses it.
  const std::unique_ptr<State> state_;
};

/// Keeps keys that are expanded from now on from the library, or ends that. Only for tests, which
/// count OpenSSL's calls or compare both.
void avoid_gcm_library(bool avoid);

}  // namespace varve::crypto
