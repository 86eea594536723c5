// SPDX-License-Identifier: Apache-2.0
#include "sealed_pairs.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

namespace varve::test {
namespace {

// The first half of the key's digest, and the nonce.
constexpr std::size_t kKeyPart = 16;
using Pair = std::array<std::byte, kKeyPart + crypto::kNonceBytes>;

// An observer is a plain function, so what it sees is in variables of the file.
struct Seen {
  std::mutex mutex;
  std::vector<Pair> pairs;
};

Seen& seen() {
  static Seen all;
  return all;
}

// Counted nonces are integers of 32 bits, so their other bytes are zero.
bool is_counted(const Pair& pair) {
  return std::all_of(pair.end() - 8, pair.end(), [](std::byte b) { return b == std::byte{}; });
}

bool same_key(const Pair& a, const Pair& b) {
  return std::equal(a.begin(), a.begin() + kKeyPart, b.begin());
}

}  // namespace

void SealedPairs::see(const crypto::SealedText& sealed) {
  Pair pair{};
  std::copy_n(sealed.key.begin(), kKeyPart, pair.begin());
  std::ranges::copy(sealed.nonce, pair.begin() + kKeyPart);
  const std::lock_guard lock(seen().mutex);
  seen().pairs.push_back(pair);
}

SealedPairs::SealedPairs() {
  {
    const std::lock_guard lock(seen().mutex);
    seen().pairs.clear();
  }
  crypto::observe_seals(see);
}

SealedPairs::~SealedPairs() { crypto::observe_seals(nullptr); }

SealedPairs::Counts SealedPairs::counts() const {
  std::vector<Pair> pairs;
  {
    const std::lock_guard lock(seen().mutex);
    pairs = seen().pairs;
  }
  std::ranges::sort(pairs);
  Counts counts;
  counts.texts = pairs.size();
  for (auto first = pairs.begin(); first != pairs.end();) {
    const auto end =
        std::find_if(first, pairs.end(), [&](const Pair& pair) { return !same_key(pair, *first); });
    ++counts.keys;
    const auto counted = static_cast<std::uint64_t>(std::count_if(first, end, is_counted));
    const auto random = static_cast<std::uint64_t>(end - first) - counted;
    counts.mixed_keys += counted != 0 && random != 0 ? 1 : 0;
    counts.random_per_key = std::max(counts.random_per_key, random);
    counts.counted_per_key = std::max(counts.counted_per_key, counted);
    for (auto at = first + 1; at < end; ++at) counts.repeated += *at == at[-1] ? 1 : 0;
    first = end;
  }
  return counts;
}

}  // namespace varve::test
