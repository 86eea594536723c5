// SPDX-License-Identifier: Apache-2.0
// Seeded inputs that chunkers are tried on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "ingest/chunker.h"
#include "support/noise.h"

namespace varve::ingest::test {

using Bytes = std::vector<std::byte>;

inline constexpr ChunkSizes kAllSizes[] = {
    {1024, 4096, 32768}, {2048, 8192, 65536}, {4096, 16384, 131072}};

inline Bytes random_bytes(std::size_t count, std::uint64_t seed) {
  const std::string text = varve::test::noise(count, seed);
  const auto bytes = base::as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

/// Words of a small vocabulary: low entropy, many near repeats.
inline Bytes text_bytes(std::size_t count, std::uint64_t seed) {
  static constexpr std::string_view kWords[] = {"lake ",         "layer ", "sediment ",
                                                "the ",          "year ",  "int main(void) {\n",
                                                "  return 0;\n", "}\n",    "0x"};
  std::mt19937_64 random(seed);
  Bytes out;
  out.reserve(count + 32);
  while (out.size() < count) {
    const auto word = kWords[random() % std::size(kWords)];
    for (const char c : word) out.push_back(static_cast<std::byte>(c));
    if (random() % 4 == 0) out.push_back(static_cast<std::byte>('0' + random() % 10));
  }
  out.resize(count);
  return out;
}

inline Bytes repeated_bytes(std::size_t count, std::size_t period, std::uint64_t seed) {
  const Bytes pattern = random_bytes(period, seed);
  Bytes out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = pattern[i % period];
  return out;
}

/// Lengths of all chunks of `data`, seen through spans of at most `view_bytes`.
inline std::vector<std::size_t> cut(const Chunker& chunker, std::span<const std::byte> data,
                                    std::size_t view_bytes = SIZE_MAX) {
  std::vector<std::size_t> lengths;
  while (!data.empty()) {
    const std::size_t length = chunker.next(data.first(std::min(view_bytes, data.size())));
    if (length == 0 || length > data.size()) return {};  // No test expects this.
    lengths.push_back(length);
    data = data.subspan(length);
  }
  return lengths;
}

}  // namespace varve::ingest::test
