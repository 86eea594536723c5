// SPDX-License-Identifier: Apache-2.0
// Encrypted repositories: user keys and key slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// Secret bytes in locked memory, left out of core dumps, and wiped. Copies share the same bytes.
/// Immutable, and thread-safe.
class Secret {
 public:
  static constexpr std::size_t kBytesMax = 8192;

  /// Makes an empty secret.
  Secret() = default;
  /// Returns a secret with a copy of `bytes`. The caller wipes the original.
  /// Errors: kTooLarge for more than kBytesMax; kIo without memory.
  [[nodiscard]] static Result<Secret> copy_of(std::span<const std::byte> bytes);
  /// Returns a secret of the bytes written by `fill` into a span of `bytes_max` bytes; `fill`
  /// returns the number of bytes.
  /// Errors: as above, and those of `fill`.
  [[nodiscard]] static Result<Secret> fill_with(
      std::size_t bytes_max, const std::function<Result<std::size_t>(std::span<std::byte>)>& fill);

  [[nodiscard]] std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  std::shared_ptr<std::byte> bytes_;
  std::size_t size_ = 0;
};

/// The kinds of keys. The values are stored.
enum class KeyKind : std::uint8_t {
  kPassphrase = 1,  ///< A text remembered by a person.
  kKeyFile = 2,     ///< The bytes of a file, at least 32.
  kCommand = 3,     ///< The text printed by a command.
  kRecovery = 4,    ///< A code on paper, from make_recovery_code().
};
/// Returns the name of a kind, such as "key-file".
[[nodiscard]] std::string_view key_kind_name(KeyKind kind);

/// A key given by the user. A passphrase in the form of a recovery code may also be a recovery
/// code.
struct UserKey {
  KeyKind kind = KeyKind::kPassphrase;
  Secret secret;
  /// Number of the only key slot to try; 0 = try each slot of a fitting kind.
  std::uint32_t slot{};
};

/// Returns the user's key. Opening an encrypted repository calls the source once; opening a plain
/// repository does not.
/// Errors: kWrongKey without a key; any other error ends the operation.
using KeySource = std::function<Result<UserKey>()>;

/// The cost of one try of a passphrase or of a command's text (Argon2id, RFC 9106).
struct PassphraseCost {
  std::uint32_t memory_kib = 64U << 10;  ///< 8 a lane to 1 GiB.
  std::uint32_t passes = 3;              ///< 1 to 16.
  std::uint32_t lanes = 4;               ///< 1 to 16.

  friend bool operator==(const PassphraseCost&, const PassphraseCost&) = default;
};

/// A key to add to a repository.
struct NewKey {
  UserKey key;
  std::string label{};  ///< Shown in lists, not secret: at most 64 bytes, one printable line.
  PassphraseCost cost{};
};

/// Choices for an encrypted repository.
struct Encryption {
  NewKey first_key;
  std::string cipher{};  ///< "aes-256-gcm" or "chacha20-poly1305"; "" = the faster cipher here.
};

/// A key slot, without its secret.
struct KeySlotInfo {
  std::uint32_t number = 0;
  KeyKind kind = KeyKind::kPassphrase;
  std::string label{};
  std::int64_t created_s = 0;  ///< Seconds since 1970.
  PassphraseCost cost{};       ///< Zeros for kinds without stretching.
};

/// The lines of a superblock about the encryption, without the secrets.
struct EncryptionInfo {
  std::string cipher{};
  std::uint32_t key_counter = 0;  ///< Number of changes of the slots.
  std::vector<KeySlotInfo> slots{};
};

/// Limit for the key slots of a repository.
inline constexpr std::size_t kKeySlotsMax = 8;

/// Returns the encryption lines of a repository's superblock, or nullopt for a plain repository.
/// Needs no key, and so does not notice altered slots or labels: opening the repository does, and
/// read_authentic_encryption().
/// Errors: those of Repository::open().
[[nodiscard]] Result<std::optional<EncryptionInfo>> read_encryption(const std::string& path,
                                                                    bool trust_owner = false);

/// Returns a new recovery code: 160 random bits and a checksum, in seven groups of five characters.
/// Errors: kIo without random bytes or memory.
[[nodiscard]] Result<Secret> make_recovery_code();

}  // namespace varve
