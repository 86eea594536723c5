// SPDX-License-Identifier: Apache-2.0
#include "base/coding.h"

#include <algorithm>
#include <charconv>

namespace varve::base {

std::string be32(std::uint32_t v) {
  v = __builtin_bswap32(v);
  return {reinterpret_cast<const char*>(&v), sizeof v};
}

std::string be64(std::uint64_t v) {
  v = __builtin_bswap64(v);
  return {reinterpret_cast<const char*>(&v), sizeof v};
}

std::uint32_t load_be32(std::string_view bytes) {
  std::uint32_t v = 0;
  if (bytes.size() >= sizeof v) std::memcpy(&v, bytes.data(), sizeof v);
  return __builtin_bswap32(v);
}

std::uint64_t load_be64(std::string_view bytes) {
  std::uint64_t v = 0;
  if (bytes.size() >= sizeof v) std::memcpy(&v, bytes.data(), sizeof v);
  return __builtin_bswap64(v);
}

void ByteWriter::varint(std::uint64_t v) {
  while (v >= 0x80) {
    u8(static_cast<std::uint8_t>(v | 0x80));
    v >>= 7;
  }
  u8(static_cast<std::uint8_t>(v));
}

std::optional<std::uint32_t> parse_hex32(std::string_view digits) {
  constexpr std::size_t kDigits = 8;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (digits.size() != kDigits || !std::ranges::all_of(digits, is_digit)) return std::nullopt;
  std::uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

std::uint64_t ByteReader::varint() {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t b = u8();
    if (!ok_) return 0;
    if (shift == 63 && b > 1) break;
    v |= static_cast<std::uint64_t>(b & 0x7f) << shift;
    if ((b & 0x80) == 0) return v;
  }
  fail();
  return 0;
}

std::span<const std::byte> ByteReader::bytes(std::size_t n) {
  if (n > bytes_.size()) {
    fail();
    return {};
  }
  const auto first = bytes_.first(n);
  bytes_ = bytes_.subspan(n);
  return first;
}

std::string_view ByteReader::sized_text(std::size_t max) {
  const std::uint64_t n = varint();
  if (n > max) {
    fail();
    return {};
  }
  return text(n);
}

}  // namespace varve::base
