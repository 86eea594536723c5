// SPDX-License-Identifier: Apache-2.0
// The encryption of an environment's values (docs/FORMAT.md §14.3).
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "crypto/key_ring.h"
#include "meta/value.h"
#include "varve/result.h"

namespace varve::meta {

/// The keys of an environment.
struct EnvKeys {
  std::shared_ptr<const crypto::KeyRing> ring;  ///< Null for a plain environment.
  crypto::Purpose purpose = crypto::Purpose::kCatalog;
  /// Identity of the environment among the environments with the same purpose, such as the numbers
  /// of an open version. An environment does not open under another identity.
  std::string place{};
};

/// The table with the salt of an encrypted environment, beside the tables of EnvOptions.
inline constexpr const char* kSealTable = "sealed";

/// Seals and opens the values of one environment; each value is bound to its table and key. Each
/// environment has a separate key, by a random salt. Immutable and thread-safe.
class ValueSeal {
 public:
  /// Bytes by which a sealed value is longer than the padded value.
  static constexpr std::size_t kExtraBytes = crypto::kNonceBytes + crypto::kTagBytes;

  /// Returns the seal of a new environment. Errors: kIo without random bytes or memory.
  [[nodiscard]] static Result<std::shared_ptr<const ValueSeal>> make(const EnvKeys& keys);
  /// Returns the seal of an environment with the record `record`.
  /// Errors: kCorrupt if the record was made with other keys, or for another place.
  [[nodiscard]] static Result<std::shared_ptr<const ValueSeal>> open(const EnvKeys& keys,
                                                                     std::string_view record);

  /// Returns the record to store in the environment. The record is not secret.
  [[nodiscard]] const std::string& record() const { return record_; }

  /// Returns the length of a sealed value of `table`: the length of the padded value plus
  /// kExtraBytes.
  [[nodiscard]] static std::size_t sealed_bytes(std::string_view table, std::size_t value_bytes);

  /// Writes the sealed value to `out`, of sealed_bytes() bytes and without overlap. `seed` is fresh
  /// random bytes.
  void seal(std::string_view table, std::string_view key, const crypto::NonceSeed& seed,
            std::string_view value, std::span<std::byte> out) const;
  /// Returns the value sealed by seal() for `table` and `key`. Errors: kCorrupt for other bytes.
  [[nodiscard]] Result<Value> open(std::string_view table, std::string_view key,
                                   std::string_view sealed) const;
  /// Returns the replacement of a name in a key: 16 bytes that reveal nothing about the name.
  [[nodiscard]] std::string hash_of(std::string_view prefix, std::string_view name) const;

 private:
  ValueSeal(const EnvKeys& keys, crypto::Salt salt, crypto::HedgedAead aead)
      : ring_(keys.ring), salt_(salt), aead_(std::move(aead)) {}
  std::shared_ptr<const crypto::KeyRing> ring_;
  crypto::Salt salt_;
  crypto::HedgedAead aead_;
  std::string record_;
};

}  // namespace varve::meta
