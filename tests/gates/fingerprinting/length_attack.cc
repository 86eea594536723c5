// SPDX-License-Identifier: Apache-2.0
#include "fingerprinting/length_attack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>

#include "base/coding.h"
#include "support/slow_chunkers.h"

namespace varve::fingerprinting {
namespace {

constexpr unsigned kHashBits = 16;
constexpr std::uint16_t kAdded = 0xb27a;  // Public: FORMAT §14.5.

/// The inverses of all bytes in GF(2^8).
const std::array<std::uint8_t, 256>& inverses() {
  static const auto table = [] {
    std::array<std::uint8_t, 256> all{};
    for (unsigned b = 1; b < 256; ++b) {
      for (unsigned x = 1; x < 256; ++x) {
        if (ingest::test::slow_product(b, x) == 1) all[b] = static_cast<std::uint8_t>(x);
      }
    }
    return all;
  }();
  return table;
}

/// A linear equation over GF(2): the unknowns whose sum is `value`.
struct Equation {
  std::uint32_t unknowns = 0;
  bool value = false;
};

bool is_odd(unsigned bits) { return std::popcount(bits) % 2 == 1; }

/// Returns a solution, or nullopt if there is none.
std::optional<std::uint32_t> solve(std::vector<Equation> equations, unsigned unknowns) {
  std::size_t rank = 0;
  std::vector<unsigned> pivots;
  for (unsigned bit = 0; bit < unknowns; ++bit) {
    const auto has_bit = [&](const Equation& one) { return ((one.unknowns >> bit) & 1U) != 0; };
    const auto found = std::find_if(equations.begin() + static_cast<std::ptrdiff_t>(rank),
                                    equations.end(), has_bit);
    if (found == equations.end()) continue;
    std::swap(*found, equations[rank]);
    const Equation pivot = equations[rank];
    for (std::size_t i = 0; i < equations.size(); ++i) {
      if (i == rank || !has_bit(equations[i])) continue;
      equations[i].unknowns ^= pivot.unknowns;
      equations[i].value = equations[i].value != pivot.value;
    }
    pivots.push_back(bit);
    ++rank;
  }
  std::uint32_t solution = 0;
  for (std::size_t i = 0; i < equations.size(); ++i) {
    if (!equations[i].value) continue;
    if (i >= rank) return std::nullopt;
    solution |= 1U << pivots[i];
  }
  return solution;
}

/// The last 16 bytes before a cut: at [0] the last one.
using CutWindow = std::array<std::uint8_t, kHashBits>;

std::vector<CutWindow> strong_cuts(std::string_view file, const Lengths& lengths,
                                   std::uint32_t avg) {
  std::vector<CutWindow> cuts;
  std::size_t at = 0;
  for (const auto length : lengths) {
    at += length;
    if (length > avg || at == file.size()) continue;  // The file's end is no cut.
    CutWindow window{};
    for (std::size_t k = 0; k < window.size(); ++k) {
      window[k] = static_cast<std::uint8_t>(file[at - 1 - k]);
    }
    cuts.push_back(window);
  }
  return cuts;
}

}  // namespace

Lengths lengths_of(const ingest::Chunker& chunker, std::string_view file) {
  Lengths lengths;
  for (auto rest = base::as_bytes(file); !rest.empty();) {
    lengths.push_back(static_cast<std::uint32_t>(chunker.next(rest)));
    rest = rest.subspan(lengths.back());
  }
  return lengths;
}

double longest_match(const Lengths& file, const Lengths& seen) {
  std::size_t longest = 0;
  std::vector<std::size_t> row(seen.size() + 1);
  for (const auto length : file) {
    for (std::size_t i = seen.size(); i > 0; --i) {
      row[i] = seen[i - 1] == length ? row[i - 1] + 1 : 0;
      longest = std::max(longest, row[i]);
    }
  }
  return file.empty() ? 0 : static_cast<double>(longest) / static_cast<double>(file.size());
}

std::optional<ingest::Gear16Table> recover_gear16(std::string_view file, const Lengths& lengths,
                                                  ingest::ChunkSizes sizes) {
  const auto cuts = strong_cuts(file, lengths, sizes.avg);
  std::array<std::uint8_t, kHashBits> rows{};
  const auto bit_of = [&](unsigned bit, std::uint8_t byte) {
    return is_odd(rows[bit] & inverses()[byte]) != (((kAdded >> bit) & 1U) != 0);
  };
  // Rows 0 and 1 together: bit 0 of the hash is not seen, and nothing is carried from it.
  std::vector<Equation> equations;
  for (const auto& window : cuts) {
    const std::uint32_t unknowns =
        inverses()[window[0]] | static_cast<std::uint32_t>(inverses()[window[1]]) << 8;
    equations.push_back({unknowns, is_odd(kAdded & 3U)});
  }
  const auto first = solve(equations, 16);
  if (!first) return std::nullopt;
  rows[1] = static_cast<std::uint8_t>(*first);
  rows[0] = static_cast<std::uint8_t>(*first >> 8);
  for (unsigned bit = 2; bit < kHashBits; ++bit) {
    equations.clear();
    for (const auto& window : cuts) {
      std::uint32_t lower = 0;  // The hash of the rows that are known.
      for (unsigned k = 0; k < kHashBits; ++k) {
        std::uint32_t entry = 0;
        for (unsigned i = 0; i < bit; ++i) entry |= bit_of(i, window[k]) ? 1U << i : 0;
        lower += entry << k;
      }
      const bool value = ((lower >> bit) & 1U) != ((kAdded >> bit) & 1U);
      equations.push_back({inverses()[window[0]], value});
    }
    const auto row = solve(equations, 8);
    if (!row) return std::nullopt;
    rows[bit] = static_cast<std::uint8_t>(*row);
  }
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  for (unsigned bit = 0; bit < 8; ++bit) {
    low |= static_cast<std::uint64_t>(rows[bit]) << (8 * (7 - bit));
    high |= static_cast<std::uint64_t>(rows[bit + 8]) << (8 * (7 - bit));
  }
  return ingest::make_gear16_table(low, high);
}

}  // namespace varve::fingerprinting
