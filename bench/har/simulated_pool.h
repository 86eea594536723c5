// SPDX-License-Identifier: Apache-2.0
// A pool without bytes: an exact index, and containers that are filled in the order of storing.
// Versions are stored through the deduplication policies of the product.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "avar/version_source.h"
#include "base/ids.h"
#include "ingest/dedup_policy.h"
#include "ingest/ingest_pipeline.h"
#include "ingest/rewrite_policy.h"

namespace varve::bench {

/// A stored chunk of a version.
struct StoredChunk {
  ChunkId id;
  std::uint32_t container = 0;
  std::uint32_t bytes = 0;
};

class SimulatedPool {
 public:
  static constexpr std::uint64_t kContainerBytes = 4U << 20;

  /// Stores a version, a batch at a time with the policy's look-ahead, as the ingest pipeline does.
  /// `bytes_of` has the size of each content. Returns the version's chunks.
  std::vector<StoredChunk> store(const std::vector<Content>& stream,
                                 const std::vector<std::uint32_t>& bytes_of,
                                 ingest::DedupPolicy& policy) {
    ++version_;
    ordinal_ = 0;
    std::vector<ingest::DedupCandidate> all;
    std::vector<StoredChunk> chunks;
    std::vector<std::uint64_t> ends = {0};  // Bytes of the stream before each chunk.
    for (const auto content : stream) ends.push_back(ends.back() + bytes_of[content]);
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t end = end_of(ends, at, ingest::IngestPipeline::kBatchBytes);
      const std::size_t shown =
          policy.look_ahead_bytes() == 0 ? end : end_of(ends, end, policy.look_ahead_bytes());
      while (all.size() < shown) {
        all.push_back(look_up(stream[all.size()], bytes_of[stream[all.size()]]));
      }
      for (std::size_t i = at; i < end; ++i) all[i] = look_up(stream[i], all[i].bytes);
      std::vector<ingest::DedupDecision> decisions(end - at, ingest::DedupDecision::kRefer);
      policy.decide(std::span(all).subspan(at, shown - at), decisions);
      ingest::DedupTally tally;
      for (std::size_t i = at; i < end; ++i) {
        chunks.push_back(commit(stream[i], all[i], decisions[i - at], tally));
      }
      policy.on_stored(tally);
      stored_bytes_ += tally.fresh_bytes + tally.again_bytes;
      at = end;
    }
    end_container();
    return chunks;
  }

  /// Returns the use of containers by a version.
  [[nodiscard]] ingest::RewriteInput use_by(const std::vector<StoredChunk>& chunks) const {
    ingest::RewriteInput input;
    std::unordered_map<std::uint32_t, std::uint64_t> used;
    std::unordered_set<std::uint64_t> counted;
    for (const auto& chunk : chunks) {
      input.logical_bytes += chunk.bytes;
      if (counted.insert(chunk.id.value).second) used[chunk.container] += chunk.bytes;
    }
    for (const auto& [container, bytes] : used) {
      input.containers.push_back({number_of(container), bytes, raw_bytes_[container]});
    }
    return input;
  }
  /// Returns the chunks of each container that is written, in their order.
  [[nodiscard]] const std::vector<std::vector<StoredChunk>>& containers() const { return written_; }
  /// Returns the bytes that all versions so far have stored.
  [[nodiscard]] std::uint64_t stored_bytes() const { return stored_bytes_; }

 private:
  static ContainerNumber number_of(std::uint32_t container) {
    return static_cast<ContainerNumber>(container | kPoolBit);
  }
  /// Returns the first chunk that begins at least `bytes` after the chunk `from`.
  static std::size_t end_of(const std::vector<std::uint64_t>& ends, std::size_t from,
                            std::uint64_t bytes) {
    const auto found = std::lower_bound(ends.begin(), ends.end() - 1, ends[from] + bytes);
    return static_cast<std::size_t>(found - ends.begin());
  }
  ingest::DedupCandidate look_up(Content content, std::uint32_t bytes) const {
    ingest::DedupCandidate candidate;
    std::memcpy(candidate.fingerprint.data(), &content, sizeof content);
    candidate.bytes = bytes;
    const auto found = index_.find(content);
    if (found == index_.end()) return candidate;
    candidate.stored = found->second.id;
    if (found->second.container < raw_bytes_.size()) {  // Else it is not written yet.
      candidate.container = number_of(found->second.container);
    }
    return candidate;
  }
  StoredChunk commit(Content content, const ingest::DedupCandidate& candidate,
                     ingest::DedupDecision decision, ingest::DedupTally& tally) {
    auto found = index_.find(content);
    const bool known = found != index_.end();
    const bool again = known && decision == ingest::DedupDecision::kStoreAgain &&
                       candidate.stored == found->second.id;
    if (known && !again) {
      ++tally.kept_chunks;
      tally.kept_bytes += candidate.bytes;
      return found->second;
    }
    if (open_bytes_ + candidate.bytes > kContainerBytes) end_container();
    const StoredChunk chunk{
        ChunkId::make(static_cast<VersionNumber>(version_ | kPoolBit), ordinal_++),
        static_cast<std::uint32_t>(raw_bytes_.size()), candidate.bytes};
    open_bytes_ += candidate.bytes;
    open_chunks_.push_back(chunk);
    index_[content] = chunk;
    ++(again ? tally.again_chunks : tally.fresh_chunks);
    (again ? tally.again_bytes : tally.fresh_bytes) += candidate.bytes;
    return chunk;
  }
  void end_container() {
    if (open_bytes_ == 0) return;
    raw_bytes_.push_back(open_bytes_);
    written_.push_back(std::exchange(open_chunks_, {}));
    open_bytes_ = 0;
  }

  std::unordered_map<Content, StoredChunk> index_;
  std::vector<std::uint64_t> raw_bytes_;           // Of the written containers.
  std::vector<std::vector<StoredChunk>> written_;  // Their chunks.
  std::uint64_t open_bytes_ = 0;                   // Of the container being filled.
  std::vector<StoredChunk> open_chunks_;           // Its chunks.
  std::uint64_t stored_bytes_ = 0;
  std::uint32_t version_ = 0;
  std::uint32_t ordinal_ = 0;
};

}  // namespace varve::bench
