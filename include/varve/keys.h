// SPDX-License-Identifier: Apache-2.0
// Changes the keys of an encrypted repository.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "varve/encryption.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve {

/// Checks the cost of a new key, before any memory is allocated for stretching the key.
/// Errors: kInvalid.
[[nodiscard]] Result<void> check_passphrase_cost(const PassphraseCost& cost);

/// Checks that a key opens the repository in `path`, at the cost of the repository's slots.
/// Errors: kWrongKey; kInvalid if the repository is plain; those of read_encryption().
[[nodiscard]] Result<void> check_key(const std::string& path, const UserKey& key,
                                     bool trust_owner = false);

/// Returns the encryption lines of the superblock, after a check that a program with the
/// repository's keys wrote the superblock: labels, kinds, times and costs of the slots are then
/// authentic. Calls `key` once.
/// Errors: kWrongKey, also if the repository is plain; kCorrupt if the superblock was changed
/// without the keys; those of read_encryption() and of `key`.
[[nodiscard]] Result<EncryptionInfo> read_authentic_encryption(const std::string& path,
                                                               const KeySource& key,
                                                               bool trust_owner = false);

/// Hands the changed text of `varve.repo` to the process that writes to the repository; see
/// Repository::adopt_keys().
using AdoptKeys = std::function<Result<void>(const std::string& superblock)>;

/// The key slots of a repository. A change is durable when its function returns, and rewrites no
/// data: each slot holds the same master key. A person with a removed key and an older copy of
/// `varve.repo` can still open the repository. For one thread.
class KeySlots {
 public:
  /// Opens the repository for writing.
  /// Errors: those of Repository::open(); kInvalid if the repository is plain.
  [[nodiscard]] static Result<std::unique_ptr<KeySlots>> open(const std::string& path,
                                                              const OpenOptions& options);
  /// Opens the slots of a repository opened for writing by another process. `adopt` passes each
  /// change to the writer's process, but never a key. Uses `trust_owner`, `key` and
  /// `encrypted_only` of the options.
  /// Errors: kInvalid if the repository is plain; kWrongKey; those of reading `varve.repo`. Changes
  /// also fail with the errors of `adopt`.
  [[nodiscard]] static Result<std::unique_ptr<KeySlots>> open_beside(const std::string& path,
                                                                     const OpenOptions& options,
                                                                     AdoptKeys adopt);
  virtual ~KeySlots() = default;

  /// Returns the present slots.
  [[nodiscard]] virtual EncryptionInfo info() const = 0;
  /// Adds a slot for a key. Returns the slot.
  /// Errors: kInvalid for an invalid key or label; kTooLarge with kKeySlotsMax slots.
  [[nodiscard]] virtual Result<KeySlotInfo> add(const NewKey& key) = 0;
  /// Replaces the slot `number` by a new slot for another key, in one step. Returns the new slot.
  /// Errors: kNotFound; kInvalid as above.
  [[nodiscard]] virtual Result<KeySlotInfo> replace(std::uint32_t number, const NewKey& key) = 0;
  /// Removes a slot.
  /// Errors: kNotFound; kNotPermitted for the last slot, and for the last slot other than recovery
  /// codes.
  [[nodiscard]] virtual Result<void> remove(std::uint32_t number) = 0;
  /// Closes the repository.
  /// Errors: those of Repository::close().
  [[nodiscard]] virtual Result<void> close() = 0;
};

}  // namespace varve
