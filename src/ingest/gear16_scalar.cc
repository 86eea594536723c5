// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/assert.h"
#include "ingest/gear_chunker.h"

namespace varve::ingest {
namespace {

constexpr std::uint8_t multiply_gf256(std::uint8_t a, std::uint8_t b) {
  unsigned product = 0;
  unsigned shifted = a;
  for (unsigned rest = b; rest != 0; rest >>= 1) {
    if ((rest & 1U) != 0) product ^= shifted;
    shifted <<= 1;
    if ((shifted & 0x100U) != 0) shifted ^= 0x11bU;
  }
  return static_cast<std::uint8_t>(product);
}

/// x^254 is x's inverse in GF(2^8), and 0 for 0.
constexpr std::uint8_t invert_gf256(std::uint8_t x) {
  std::uint8_t power = x;
  std::uint8_t result = 1;
  for (unsigned exponent = 254; exponent != 0; exponent >>= 1) {
    if ((exponent & 1U) != 0) result = multiply_gf256(result, power);
    power = multiply_gf256(power, power);
  }
  return result;
}

/// GF2P8AFFINEINVQB for one byte: row i of the matrix is byte 7-i of the number.
constexpr unsigned affine_of_inverse(std::uint64_t matrix, std::uint8_t add, std::uint8_t inverse) {
  unsigned out = add;
  for (unsigned bit = 0; bit < 8; ++bit) {
    const auto row = static_cast<std::uint8_t>(matrix >> (8 * (7 - bit)));
    out ^= (static_cast<unsigned>(std::popcount(static_cast<unsigned>(row & inverse))) & 1U) << bit;
  }
  return out;
}

constexpr Gear16Table table_of(std::uint64_t matrix_low, std::uint64_t matrix_high) {
  Gear16Table table{matrix_low, matrix_high, {}};
  for (unsigned b = 0; b < 256; ++b) {
    const std::uint8_t inverse = invert_gf256(static_cast<std::uint8_t>(b));
    const unsigned low = affine_of_inverse(matrix_low, kGear16AddLow, inverse);
    const unsigned high = affine_of_inverse(matrix_high, kGear16AddHigh, inverse);
    table.entries[b] = static_cast<std::uint16_t>(low | (high << 8));
  }
  return table;
}

std::uint16_t roll(const Gear16Table& table, std::uint16_t hash, std::byte next) {
  return static_cast<std::uint16_t>((hash << 1) + table.entries[std::to_integer<unsigned>(next)]);
}

std::uint16_t top_bits(unsigned count) {
  return static_cast<std::uint16_t>(0xffffU << (16 - std::min(16U, count)));
}

}  // namespace

constexpr Gear16Table kGear16Table = table_of(kGear16MatrixLow, kGear16MatrixHigh);

Gear16Table make_gear16_table(std::uint64_t matrix_low, std::uint64_t matrix_high) {
  return table_of(matrix_low, matrix_high);
}

Gear16Rule make_gear16_rule(ChunkSizes sizes, const Gear16Table& table) {
  const auto avg_bits = static_cast<unsigned>(std::countr_zero(sizes.avg));
  return {.table = &table,
          .min = sizes.min,
          .avg = sizes.avg,
          .max = sizes.max,
          .strong = top_bits(avg_bits + 2),
          .loose = top_bits(avg_bits - 2)};
}

std::size_t gear16_scan_range(const Gear16Rule& rule, std::span<const std::byte> data,
                              std::size_t from, std::size_t end) {
  VARVE_ASSERT(from >= kGear16WindowBytes && end <= data.size());
  const Gear16Table& table = *rule.table;
  std::uint16_t hash = 0;
  for (std::size_t i = from - kGear16WindowBytes; i < from; ++i) hash = roll(table, hash, data[i]);
  std::size_t i = from;
  for (const std::size_t avg = std::min(rule.avg, end); i < avg; ++i) {
    hash = roll(table, hash, data[i]);
    if ((hash & rule.strong) == 0) return i + 1;
  }
  for (; i < end; ++i) {
    hash = roll(table, hash, data[i]);
    if ((hash & rule.loose) == 0) return i + 1;
  }
  return end;
}

std::size_t gear16_scan_scalar(const Gear16Rule& rule, std::span<const std::byte> data) {
  if (data.size() <= rule.min) return data.size();
  return gear16_scan_range(rule, data, rule.min, std::min(rule.max, data.size()));
}

}  // namespace varve::ingest
