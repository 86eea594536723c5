// SPDX-License-Identifier: Apache-2.0
// The marks of grouped mark-and-sweep (Guo and Efstathopoulos, ATC'11 §3.2): for each group of
// backups, a bitmap of the used chunks of each container.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/coding.h"
#include "cma/pool_content.h"

namespace varve::bench {

/// Returns the size of the bitmaps, without the containers' numbers.
inline std::uint64_t bitmap_bytes(const Marks& marks) {
  std::uint64_t sum = 0;
  for (const auto& [container, bitmap] : marks) sum += (bitmap.size() + 7) / 8;
  return sum;
}

/// Returns the size of the bitmaps of these versions, so many in a group.
inline std::uint64_t bitmap_bytes(std::span<const Marks> versions, std::size_t group) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < versions.size(); at += group) {
    Marks marks;
    for (const auto& one : versions.subspan(at, std::min(group, versions.size() - at))) {
      unite(marks, one);
    }
    sum += bitmap_bytes(marks);
  }
  return sum;
}

/// Encode and decode marks as a file: for each container its number, the number of its chunks, and
/// the bitmap.
inline std::string encode_marks(const Marks& marks) {
  std::string out;
  base::ByteWriter writer(out);
  for (const auto& [container, bitmap] : marks) {
    writer.u32(container);
    writer.u32(static_cast<std::uint32_t>(bitmap.size()));
    std::string bits((bitmap.size() + 7) / 8, '\0');
    for (std::size_t i = 0; i < bitmap.size(); ++i) {
      if (bitmap[i]) bits[i / 8] = static_cast<char>(bits[i / 8] | (1 << (i % 8)));
    }
    out += bits;
  }
  return out;
}
inline Marks decode_marks(std::string_view bytes) {
  Marks marks;
  base::ByteReader reader(bytes);
  while (!reader.done()) {
    auto& bitmap = marks[reader.u32()];
    bitmap.resize(reader.u32());
    for (std::size_t i = 0; i < bitmap.size(); i += 8) {
      const auto byte = reader.u8();
      for (std::size_t bit = 0; bit < 8 && i + bit < bitmap.size(); ++bit) {
        bitmap[i + bit] = (byte >> bit & 1) != 0;
      }
    }
  }
  return marks;
}

}  // namespace varve::bench
