// SPDX-License-Identifier: Apache-2.0
// The key slots of a repository: each holds the master key, sealed under a key of its user.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/aead.h"
#include "crypto/key_ring.h"
#include "varve/encryption.h"
#include "varve/result.h"

namespace varve::crypto {

/// One slot. docs/FORMAT.md §14.1.
struct KeySlot {
  KeySlotInfo info;
  Salt salt{};
  /// Names the slot's key: a key that gives another value is refused before it opens anything.
  AuthenticationCode<kKeyBytes> commitment{};
  std::array<std::byte, kKeyBytes> sealed{};  ///< The master key.
  Tag tag{};
};

/// Returns true for kinds whose keys may be easy to guess: each try of one costs PassphraseCost.
[[nodiscard]] bool is_guessable(KeyKind kind);

/// Checks the cost before any memory is taken for it. Errors: kInvalid.
[[nodiscard]] Result<void> check_cost(const PassphraseCost& cost);
/// Derives a key from a text at a cost, by Argon2id.
/// Errors: kInvalid for a cost that is not allowed; kIo without memory.
[[nodiscard]] Result<SecretKey> stretch(std::span<const std::byte> text,
                                        std::span<const std::byte> salt,
                                        const PassphraseCost& cost);
/// Checks the label of a slot. Errors: kInvalid.
[[nodiscard]] Result<void> check_label(std::string_view label);

/// Returns a slot with this number that `key` opens. Errors: kInvalid for a key that is too short,
/// or a cost or label that is not allowed; kIo without memory or random bytes.
[[nodiscard]] Result<KeySlot> seal_slot(const NewKey& key, std::uint32_t number,
                                        std::int64_t created_s, const SecretKey& master,
                                        std::string_view repository_id);

/// Limit for the cost of all tries of one opening, in KiB of memory times passes: the cost of the
/// most expensive slot that check_cost() allows. Forged slots cost no more.
inline constexpr std::uint64_t kTriedCostMax = std::uint64_t{16} << 20;

/// The slots of passphrases and commands that an opening tries.
struct SlotTries {
  std::vector<const KeySlot*> slots{};  ///< The cheapest first.
  std::size_t left_out = 0;             ///< Number of slots that would exceed the limit.
};
/// Returns the tries of an opening. The cheapest slots come first, so a right key costs at most
/// kKeySlotsMax times what its own slot costs, whatever slots were forged beside it.
/// Lifetime: the result points to `slots`.
[[nodiscard]] SlotTries slots_to_try(const std::vector<KeySlot>& slots, std::uint64_t cost_max);
/// Checks that an opening would try all of these slots. Errors: kInvalid.
[[nodiscard]] Result<void> check_total_cost(const std::vector<KeySlot>& slots);

/// Returns the master key from the first slot that `key` opens. A passphrase and the text of a
/// command open slots of either kind, and of a recovery code if they have its form. Tries the slots
/// of slots_to_try(), or the one that `key` names.
/// Errors: kWrongKey; kIo without memory.
[[nodiscard]] Result<SecretKey> open_slots(const std::vector<KeySlot>& slots, const UserKey& key,
                                           std::string_view repository_id,
                                           std::uint64_t cost_max = kTriedCostMax);

/// Returns the 20 bytes that a recovery code stands for, or nullopt for a text that is none. Takes
/// lower-case letters, and the letters that look like 0 and 1, and skips spaces and hyphens.
[[nodiscard]] Result<std::optional<Secret>> parse_recovery_code(std::span<const std::byte> text);

}  // namespace varve::crypto
