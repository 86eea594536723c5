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
  /// Identity of the environment among those of its purpose, such as the numbers of an open
  /// version. An environment does not open as another one.
  std::string place{};
};

/// The table of an encrypted environment that has its salt, beside those of EnvOptions.
inline constexpr const char* kSealTable = "sealed";

/// Seals and opens the values of one environment, each for its table and key. Each environment has
/// a key of its own, by a random salt. Immutable and thread-safe.
class ValueSeal {
 public:
  /// Bytes by which a sealed value is longer than the padded value.
  static constexpr std::size_t kExtraBytes = crypto::kNonceBytes + crypto::kTagBytes;

  /// Returns the seal of a new environment. Errors: kIo without random bytes or memory.
  [[nodiscard]] static Result<std::shared_ptr<const ValueSeal>> make(const EnvKeys& keys);
  /// Returns the seal of an environment that has this record.
  /// Errors: kCorrupt if the record was made with other keys, or for another place.
  [[nodiscard]] static Result<std::shared_ptr<const ValueSeal>> open(const EnvKeys& keys,
                                                                     std::string_view record);

  /// Returns the record that the environment keeps, which is not secret.
  [[nodiscard]] const std::string& record() const { return record_; }

  /// Returns the length of a sealed value of this table: that of the padded value, and kExtraBytes.
  [[nodiscard]] static std::size_t sealed_bytes(std::string_view table, std::size_t value_bytes);

  /// Writes the sealed value to `out`, which has sealed_bytes() and does not overlap it. `seed` is
  /// fresh random bytes.
  void seal(std::string_view table, std::string_view key, const crypto::NonceSeed& seed,
            std::string_view value, std::span<std::byte> out) const;
  /// Returns the value that seal() sealed for this table and key. Errors: kCorrupt for other bytes.
  [[nodiscard]] Result<Value> open(std::string_view table, std::string_view key,
                                   std::string_view sealed) const;
  /// Returns what stands for a name in a key: 16 bytes that tell nothing about the name.
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
