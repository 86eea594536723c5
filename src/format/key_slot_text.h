// SPDX-License-Identifier: Apache-2.0
// The text of a key slot in the superblock. docs/FORMAT.md §14.1.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "crypto/aead.h"
#include "crypto/key_slots.h"

namespace varve::format {

/// Returns the value of the line `key_slot_NUMBER`.
[[nodiscard]] std::string encode_key_slot(const crypto::KeySlot& slot);
/// Decodes the value of a line. Returns nullopt for a malformed text and for a cost outside the
/// limits.
[[nodiscard]] std::optional<crypto::KeySlot> decode_key_slot(std::uint32_t number,
                                                             std::string_view whole);

/// Returns a cipher's name in the superblock.
[[nodiscard]] std::string_view cipher_name(crypto::Cipher cipher);
/// Returns the cipher with a name, or nullopt if there is none.
[[nodiscard]] std::optional<crypto::Cipher> parse_cipher(std::string_view name);

/// Returns two lower-case hexadecimal digits for each byte.
[[nodiscard]] std::string hex_text(std::span<const std::byte> bytes);
/// Sets `out` to the bytes of lower-case hexadecimal digits. Returns false for any other text.
[[nodiscard]] bool read_hex(std::string_view digits, std::span<std::byte> out);

}  // namespace varve::format
