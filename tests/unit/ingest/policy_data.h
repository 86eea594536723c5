// SPDX-License-Identifier: Apache-2.0
// Random candidates for the rewriting policies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ingest/dedup_policy.h"
#include "ingest/rewrite_policy.h"

namespace varve::ingest::test {

inline ContainerNumber pool_container(std::uint32_t number) {
  return static_cast<ContainerNumber>(number | kPoolBit);
}

inline Fingerprint fingerprint_of(std::uint64_t content) {
  Fingerprint fingerprint{};
  std::memcpy(fingerprint.data(), &content, sizeof content);
  return fingerprint;
}

/// Returns a stream of candidates: runs of containers' chunks, some repeated, mixed with new
/// chunks, with chunks of the series' own containers, and with copies that are not written yet.
inline std::vector<DedupCandidate> random_candidates(std::size_t count, std::uint32_t containers,
                                                     std::uint64_t seed) {
  constexpr std::uint32_t kChunks = 500;  // Of a container.
  std::mt19937_64 random(seed);
  std::vector<DedupCandidate> all;
  std::uint64_t fresh = 0;
  while (all.size() < count) {
    const auto kind = random() % 20;
    const auto container = static_cast<std::uint32_t>(random() % containers);
    const auto first = static_cast<std::uint32_t>(random() % kChunks);
    // Each container has runs of its own typical length, so that some are used more than others.
    const std::size_t length = 1 + random() % (1 + container * container % 97);
    for (std::size_t i = 0; i < length; ++i) {
      DedupCandidate one;
      const auto chunk = static_cast<std::uint32_t>((first + i) % kChunks);
      const std::uint64_t content = kind < 4 ? (1ULL << 60) + fresh++ : container * 1000ULL + chunk;
      one.bytes = 2048 + static_cast<std::uint32_t>(content * 2654435761ULL % 12000);
      one.fingerprint = fingerprint_of(content);
      if (kind >= 4) {
        const auto birth = static_cast<VersionNumber>(kind == 4 ? 1 : kPoolBit | 1);
        one.stored = ChunkId::make(birth, container * 1000 + chunk);
        if (kind != 5)
          one.container = kind == 4 ? ContainerNumber{container} : pool_container(container);
      }
      all.push_back(one);
    }
  }
  all.resize(count);
  return all;
}

/// Decides about `all` as the pipeline does: segments of `segment` candidates, followed by those of
/// the policy's look-ahead and the rest of the segment that these end in.
inline std::vector<DedupDecision> decide_all(DedupPolicy& policy,
                                             const std::vector<DedupCandidate>& all,
                                             std::size_t segment) {
  std::vector<DedupDecision> decisions(all.size(), DedupDecision::kRefer);
  for (std::size_t at = 0; at < all.size(); at += segment) {
    const std::size_t own = std::min(segment, all.size() - at);
    std::size_t end = at + own;
    for (std::size_t ahead = 0; end < all.size() && ahead < policy.look_ahead_bytes();) {
      const std::size_t next = std::min(segment, all.size() - end);
      for (std::size_t i = 0; i < next; ++i) ahead += all[end + i].bytes;
      end += next;
    }
    policy.decide(std::span(all).subspan(at, end - at), std::span(decisions).subspan(at, own));
  }
  return decisions;
}

}  // namespace varve::ingest::test
