// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cctype>

#include "base/checksum.h"
#include "base/random_bytes.h"
#include "crypto/key_slots.h"

namespace varve {

namespace {

// Crockford's base 32: no letter looks like another letter or digit.
constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::size_t kRandomBytes = 20;
constexpr std::size_t kRandomCharacters = kRandomBytes * 8 / 5;
constexpr std::size_t kCharacters = kRandomCharacters + 3;  // Three characters are the checksum.
constexpr std::size_t kGroup = 5;
constexpr std::size_t kTextBytes = kCharacters + kCharacters / kGroup - 1;

/// Returns five bits at a character's place in a string of bits.
unsigned five_bits(std::span<const std::byte> bytes, std::size_t character) {
  unsigned value = 0;
  for (std::size_t bit = character * 5; bit < character * 5 + 5; ++bit) {
    value = value << 1 | (std::to_integer<unsigned>(bytes[bit / 8]) >> (7 - bit % 8) & 1U);
  }
  return value;
}

unsigned checksum_of(std::span<const std::byte> bytes, std::size_t character) {
  return static_cast<unsigned>(base::checksum64(bytes) >> (5 * (character - kRandomCharacters))) &
         31U;
}

unsigned value_at(std::span<const std::byte> bytes, std::size_t character) {
  return character < kRandomCharacters ? five_bits(bytes, character)
                                       : checksum_of(bytes, character);
}

/// Returns whether a character may stand anywhere: editors and programs break lines.
bool is_blank(char character) {
  return std::string_view(" \t\r\n\v\f").find(character) != std::string_view::npos;
}

/// Returns the value of a character; nullopt for a character that no code contains.
std::optional<unsigned> value_of(char character) {
  auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(character)));
  if (upper == 'O') upper = '0';
  if (upper == 'I' || upper == 'L') upper = '1';
  const auto at = kAlphabet.find(upper);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<unsigned>(at);
}

}  // namespace

Result<Secret> make_recovery_code() {
  std::array<std::byte, kRandomBytes> random{};
  VARVE_TRY(base::fill_random(random));
  auto code = Secret::fill_with(kTextBytes, [&](std::span<std::byte> out) -> Result<std::size_t> {
    std::size_t at = 0;
    for (std::size_t i = 0; i < kCharacters; ++i) {
      if (i != 0 && i % kGroup == 0) out[at++] = std::byte{'-'};
      out[at++] = static_cast<std::byte>(kAlphabet[value_at(random, i)]);
    }
    return at;
  });
  crypto::wipe(random);
  return code;
}

namespace crypto {

Result<std::optional<Secret>> parse_recovery_code(std::span<const std::byte> text) {
  bool valid = true;
  auto code = Secret::fill_with(kRandomBytes, [&](std::span<std::byte> out) -> Result<std::size_t> {
    std::size_t count = 0;
    for (const auto byte : text) {
      const auto character = std::to_integer<char>(byte);
      if (character == '-' || is_blank(character)) continue;
      const auto value = value_of(character);
      valid = valid && value && count < kCharacters;
      if (!valid) break;
      if (count < kRandomCharacters) {
        for (std::size_t bit = 0; bit < 5; ++bit) {
          const auto place = count * 5 + bit;
          if ((*value >> (4 - bit) & 1U) == 0) continue;
          out[place / 8] |= static_cast<std::byte>(0x80U >> place % 8);
        }
      } else {
        valid = *value == checksum_of(out, count);
      }
      ++count;
    }
    valid = valid && count == kCharacters;
    return kRandomBytes;
  });
  if (!code) return std::move(code).error();
  return valid ? std::optional<Secret>(*std::move(code)) : std::nullopt;
}

}  // namespace crypto
}  // namespace varve
