// SPDX-License-Identifier: Apache-2.0
// Random damage to the bytes of a file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>

#include "base/coding.h"

namespace varve::test {

/// Numbers that a seed determines.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  char byte() { return static_cast<char>(engine_()); }

 private:
  std::mt19937_64 engine_;
};

/// Writes an extreme number over a field: eight or four bytes in either order, or a varint. A sum
/// with such a number wraps, or exceeds each file.
inline void put_extreme_number(std::string& bytes, Random& random) {
  constexpr std::uint64_t kEdges[] = {0,
                                      1,
                                      0x7fffffff,
                                      0x80000000,
                                      0xfffffffe,
                                      0xffffffff,
                                      0x100000000,
                                      0x7fffffffffffffff,
                                      0x8000000000000000,
                                      0xffffffff00000000,
                                      0xfffffffffffffffe,
                                      0xffffffffffffffff};
  const auto value = kEdges[random.below(std::size(kEdges))];
  const auto at = random.below(bytes.size() + 1);
  std::string field;
  std::size_t replaced = 0;
  if (random.below(2) == 0) {  // Most values consist of varints.
    base::ByteWriter(field).varint(value);
    while (at + replaced < bytes.size() && (bytes[at + replaced] & 0x80) != 0) ++replaced;
    ++replaced;
  } else {
    const bool is_short = random.below(2) == 0;
    field = is_short ? base::be32(static_cast<std::uint32_t>(value)) : base::be64(value);
    if (random.below(4) == 0) std::reverse(field.begin(), field.end());
    replaced = field.size();
  }
  bytes.replace(at, std::min(replaced, bytes.size() - at), field);
}

/// Writes an extreme number over one of the fields of a table's key, which have four or eight
/// bytes.
inline void put_extreme_key(std::string& key, Random& random) {
  constexpr std::uint32_t kEdges[] = {0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  const auto fields = key.size() / sizeof(std::uint32_t);
  if (fields == 0) return;
  const auto first = random.below(fields);
  const auto last = std::min(fields, first + 1 + random.below(2));
  const auto value = base::be32(kEdges[random.below(std::size(kEdges))]);
  for (auto field = first; field < last; ++field) key.replace(field * 4, 4, value);
}

/// Changes some bytes, or the length.
inline void damage(std::string& bytes, Random& random) {
  if (bytes.empty()) bytes.push_back('\0');
  for (auto changes = random.below(3) + 1; changes > 0; --changes) {
    const auto at = random.below(bytes.size());
    const auto left = bytes.size() - at;
    switch (random.below(9)) {
      case 0:
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
      case 2:
        bytes[at] = random.byte();
        break;
      case 3:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    std::min(left, random.below(5000) + 1), '\0');
        break;
      case 4:
        bytes.resize(std::max<std::size_t>(at, 1));
        break;
      case 5: {  // Copies a part over another one, like a misdirected write.
        const auto part = bytes.substr(random.below(bytes.size()), random.below(4096) + 1);
        bytes.replace(at, std::min(left, part.size()), part, 0, std::min(left, part.size()));
        break;
      }
      case 6: {
        constexpr std::uint64_t kEdges[] = {0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, ~0ULL};
        const auto value = kEdges[random.below(std::size(kEdges))];
        const auto width = std::min(left, std::size_t{1} << random.below(4));
        bytes.replace(at, width, reinterpret_cast<const char*>(&value), width);
        break;
      }
      case 7:
        put_extreme_number(bytes, random);
        break;
      default:
        bytes.insert(at, random.below(9) + 1, random.byte());
        break;
    }
  }
}

}  // namespace varve::test
