// SPDX-License-Identifier: Apache-2.0
#include "format/key_slot_text.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <utility>

namespace varve::format {

namespace {

constexpr std::string_view kArgon2 = "argon2id";
constexpr std::string_view kHkdf = "hkdf";
constexpr std::array<KeyKind, 4> kKinds = {KeyKind::kPassphrase, KeyKind::kKeyFile,
                                           KeyKind::kCommand, KeyKind::kRecovery};
constexpr std::array<std::pair<crypto::Cipher, std::string_view>, 2> kCiphers = {{
    {crypto::Cipher::kAes256Gcm, "aes-256-gcm"},
    {crypto::Cipher::kChaCha20Poly1305, "chacha20-poly1305"},
}};

/// Takes the text up to a separator off the front.
std::string_view take_word(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

template <typename Number>
bool read_number(std::string_view text, Number& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size();
}

bool read_cost(std::string_view text, PassphraseCost& cost) {
  if (take_word(text, ':') != kArgon2) return false;
  const bool whole = read_number(take_word(text, ':'), cost.memory_kib) &&
                     read_number(take_word(text, ':'), cost.passes) &&
                     read_number(text, cost.lanes);
  return whole && crypto::check_cost(cost);
}

}  // namespace

std::string hex_text(std::span<const std::byte> bytes) {
  std::string text;
  for (const auto byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

bool read_hex(std::string_view digits, std::span<std::byte> out) {
  if (digits.size() != 2 * out.size()) return false;
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto value = kDigits.find(digits[i]);
    if (value == std::string_view::npos) return false;
    out[i / 2] = static_cast<std::byte>(i % 2 == 0 ? value << 4
                                                   : std::to_integer<unsigned>(out[i / 2]) | value);
  }
  return true;
}

std::string_view cipher_name(crypto::Cipher cipher) {
  for (const auto& [one, name] : kCiphers) {
    if (one == cipher) return name;
  }
  return {};
}

std::optional<crypto::Cipher> parse_cipher(std::string_view name) {
  for (const auto& [cipher, known] : kCiphers) {
    if (known == name) return cipher;
  }
  return std::nullopt;
}

std::string encode_key_slot(const crypto::KeySlot& slot) {
  const auto& cost = slot.info.cost;
  const std::string derivation =
      crypto::is_guessable(slot.info.kind)
          ? fmt::format("{}:{}:{}:{}", kArgon2, cost.memory_kib, cost.passes, cost.lanes)
          : std::string(kHkdf);
  std::string text = fmt::format(
      "{} {} {} {} {} {}{}", key_kind_name(slot.info.kind), slot.info.created_s, derivation,
      hex_text(slot.salt), hex_text(slot.commitment), hex_text(slot.sealed), hex_text(slot.tag));
  if (!slot.info.label.empty()) text += " " + slot.info.label;
  return text;
}

std::optional<crypto::KeySlot> decode_key_slot(std::uint32_t number, std::string_view whole) {
  std::string_view text = whole;
  crypto::KeySlot slot;
  slot.info.number = number;
  slot.info.cost = {0, 0, 0};
  const auto kind_name = take_word(text, ' ');
  bool known = false;
  for (const auto kind : kKinds) {
    if (key_kind_name(kind) != kind_name) continue;
    slot.info.kind = kind;
    known = true;
  }
  if (!known || !read_number(take_word(text, ' '), slot.info.created_s)) return std::nullopt;
  const auto derivation = take_word(text, ' ');
  const bool derives = crypto::is_guessable(slot.info.kind) ? read_cost(derivation, slot.info.cost)
                                                            : derivation == kHkdf;
  if (!derives || !read_hex(take_word(text, ' '), slot.salt) ||
      !read_hex(take_word(text, ' '), slot.commitment)) {
    return std::nullopt;
  }
  const auto sealed = take_word(text, ' ');
  if (sealed.size() != 2 * (slot.sealed.size() + slot.tag.size())) return std::nullopt;
  if (!read_hex(sealed.substr(0, 2 * slot.sealed.size()), slot.sealed) ||
      !read_hex(sealed.substr(2 * slot.sealed.size()), slot.tag)) {
    return std::nullopt;
  }
  if (!crypto::check_label(text)) return std::nullopt;
  slot.info.label = text;
  // A slot has a single spelling.
  if (encode_key_slot(slot) != whole) return std::nullopt;
  return slot;
}

}  // namespace varve::format
