// SPDX-License-Identifier: Apache-2.0
// Codecs for little-endian integers, LEB128 varints, length-prefixed strings, and the numbers in
// file names. A reader checks every length against the remaining bytes and never reads outside the
// span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace varve::base {

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Int>
inline Int load_le(const std::byte* p) {
  Int v;
  std::memcpy(&v, p, sizeof v);  // The supported machines are little-endian.
  return v;
}
template <typename Int>
inline void store_le(std::byte* p, Int v) {
  std::memcpy(p, &v, sizeof v);
}
/// Encode and decode big-endian numbers, so that keys sort in numeric order.
std::string be32(std::uint32_t v);
std::string be64(std::uint64_t v);
std::uint32_t load_be32(std::string_view bytes);
std::uint64_t load_be64(std::string_view bytes);

/// Returns the value of eight lower-case hexadecimal digits, as in file names; nullopt for any
/// other text.
std::optional<std::uint32_t> parse_hex32(std::string_view digits);

/// Zigzag coding: maps numbers close to zero, of either sign, to small unsigned numbers.
inline std::uint64_t zigzag(std::int64_t v) {
  return (static_cast<std::uint64_t>(v) << 1) ^ static_cast<std::uint64_t>(v >> 63);
}
inline std::int64_t unzigzag(std::uint64_t v) {
  return static_cast<std::int64_t>(v >> 1) ^ -static_cast<std::int64_t>(v & 1);
}

/// Appends encoded values to a string owned by the caller.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}
  void u8(std::uint8_t v) { out_.push_back(static_cast<char>(v)); }
  void u16(std::uint16_t v) { raw(&v, sizeof v); }
  void u32(std::uint32_t v) { raw(&v, sizeof v); }
  void u64(std::uint64_t v) { raw(&v, sizeof v); }
  void varint(std::uint64_t v);
  void svarint(std::int64_t v) { varint(zigzag(v)); }
  void bytes(std::span<const std::byte> b) { raw(b.data(), b.size()); }
  void text(std::string_view s) { out_.append(s); }
  /// Appends the length as a varint, then the bytes.
  void sized_text(std::string_view s) {
    varint(s.size());
    text(s);
  }

 private:
  void raw(const void* p, std::size_t n) { out_.append(static_cast<const char*>(p), n); }
  std::string& out_;
};

/// Reads values in the order of writing. After the first failure, every call returns zero or empty,
/// and ok() returns false. The caller checks ok() once, before using the values.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  explicit ByteReader(std::string_view text) : bytes_(as_bytes(text)) {}
  std::uint8_t u8() { return fixed<std::uint8_t>(); }
  std::uint16_t u16() { return fixed<std::uint16_t>(); }
  std::uint32_t u32() { return fixed<std::uint32_t>(); }
  std::uint64_t u64() { return fixed<std::uint64_t>(); }
  std::uint64_t varint();
  std::int64_t svarint() { return unzigzag(varint()); }
  std::span<const std::byte> bytes(std::size_t n);
  std::string_view text(std::size_t n) { return as_text(bytes(n)); }
  /// Reads a varint length and the bytes of the text. Fails if the length exceeds `max`.
  std::string_view sized_text(std::size_t max);
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }
  [[nodiscard]] bool ok() const { return ok_; }
  /// True if nothing failed and nothing is left.
  [[nodiscard]] bool done() const { return ok_ && bytes_.empty(); }
  void fail() {
    ok_ = false;
    bytes_ = {};
  }

 private:
  template <typename Int>
  Int fixed() {
    const auto b = bytes(sizeof(Int));
    return b.size() == sizeof(Int) ? load_le<Int>(b.data()) : Int{0};
  }
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace varve::base
