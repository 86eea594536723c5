// SPDX-License-Identifier: Apache-2.0
// The key slots of a repository: each slot holds the master key, sealed under a key of the user.
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
  /// Names the slot's key: a key with a different commitment is refused before opening anything.
  AuthenticationCode<kKeyBytes> commitment{};
  std::array<std::byte, kKeyBytes> sealed{};  ///< The master key.
  Tag tag{};
};

/// Returns whether keys of a kind may be easy to guess: each try of such a key costs
/// PassphraseCost.
[[nodiscard]] bool is_guessable(KeyKind kind);

/// Checks a cost before any memory is allocated for the cost. Errors: kInvalid.
[[nodiscard]] Result<void> check_cost(const PassphraseCost& cost);
/// Derives a key from a text at a cost, by Argon2id.
/// Errors: kInvalid for a forbidden cost; kIo without memory.
[[nodiscard]] Result<SecretKey> stretch(std::span<const std::byte> text,
                                        std::span<const std::byte> salt,
                                        const PassphraseCost& cost);
/// Checks the label of a slot. Errors: kInvalid.
[[nodiscard]] Result<void> check_label(std::string_view label);

/// Returns a slot with the given number that `key` opens. Errors: kInvalid for a short key or a
/// forbidden cost or label; kIo without memory or random bytes.
[[nodiscard]] Result<KeySlot> seal_slot(const NewKey& key, std::uint32_t number,
                                        std::int64_t created_s, const SecretKey& master,
                                        std::string_view repository_id);

/// Limit for the cost of all tries of one opening, in KiB of memory times passes: the cost of the
/// most expensive slot allowed by check_cost(). Forged slots cost no more.
inline constexpr std::uint64_t kTriedCostMax = std::uint64_t{16} << 20;

/// The slots of passphrases and commands tried by an opening.
struct SlotTries {
  std::vector<const KeySlot*> slots{};  ///< The cheapest first.
  std::size_t left_out = 0;             ///< Number of slots that would exceed the limit.
};
/// Returns the tries of an opening. The cheapest slots come first, so a right key costs at most
/// kKeySlotsMax times the cost of its slot, whatever slots were forged.
/// Lifetime: the result points to `slots`.
[[nodiscard]] SlotTries slots_to_try(const std::vector<KeySlot>& slots, std::uint64_t cost_max);
/// Checks that an opening would try all `slots`. Errors: kInvalid.
[[nodiscard]] Result<void> check_total_cost(const std::vector<KeySlot>& slots);

/// Returns the master key from the first slot opened by `key`. A passphrase and the text of a
/// command open slots of either kind. A text in the form of a recovery code also opens slots of
/// recovery codes. Tries the slots of slots_to_try(), or only the slot named by `key`.
/// Errors: kWrongKey; kIo without memory.
[[nodiscard]] Result<SecretKey> open_slots(const std::vector<KeySlot>& slots, const UserKey& key,
                                           std::string_view repository_id,
                                           std::uint64_t cost_max = kTriedCostMax);

/// Returns the 20 bytes of a recovery code; nullopt for any other text. Accepts lower-case letters,
/// and letters that look like 0 and 1, and skips spaces and hyphens.
[[nodiscard]] Result<std::optional<Secret>> parse_recovery_code(std::span<const std::byte> text);

}  // namespace varve::crypto
