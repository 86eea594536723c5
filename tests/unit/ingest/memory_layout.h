// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "format/frame_codec.h"
#include "layout/layout.h"
#include "support/chunker_test_data.h"

namespace varve::ingest {

inline constexpr VersionNumber kLayoutVersion{1};
inline constexpr VersionNumber kLayoutPoolBirth{kPoolBit | 1};

/// Keeps placed chunks in memory, those of the pool apart from the others. The disk below can be
/// full.
class MemoryLayout final : public layout::Layout {
 public:
  Result<ChunkId> place(const Fingerprint& /*fingerprint*/,
                        std::span<const std::byte> raw) override {
    return take(kLayoutVersion, chunks_, raw);
  }
  Result<ChunkId> place_shared(const Fingerprint& fingerprint,
                               std::span<const std::byte> raw) override {
    if (!has_pool) return place(fingerprint, raw);
    return take(kLayoutPoolBirth, pool_chunks_, raw);
  }
  test::Bytes chunk(ChunkId id) {
    const std::lock_guard lock(mutex_);
    return (is_pool(id) ? pool_chunks_ : chunks_).at(id.ordinal());
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    chunks_.clear();
    pool_chunks_.clear();
  }
  std::size_t chunks() {
    const std::lock_guard lock(mutex_);
    return chunks_.size();
  }
  std::size_t pool_chunks() {
    const std::lock_guard lock(mutex_);
    return pool_chunks_.size();
  }

  const format::FrameCodec& codec() const override { return *codec_; }
  /// Each container holds kContainerChunks chunks. Chunks from `unwritten_from` on have no place.
  Result<layout::LocationRun> locate(ChunkId id) override {
    ++located;
    if (id.ordinal() >= unwritten_from) return Error(ErrorCode::kCorrupt, "not written yet");
    const std::uint32_t first = id.ordinal() / kContainerChunks * kContainerChunks;
    const std::uint32_t count = std::min(kContainerChunks, unwritten_from.load() - first);
    const std::uint32_t pool = is_pool(id) ? kPoolBit : 0;
    return layout::LocationRun{ChunkId::make(id.birth(), first), count, 0,
                               ContainerNumber{first / kContainerChunks | pool}, 0};
  }
  Result<std::shared_ptr<const format::ContainerHeader>> header(ContainerNumber /*c*/) override {
    return unused();
  }
  Result<void> read_data(ContainerNumber /*c*/, std::uint32_t /*o*/,
                         std::span<std::byte> /*out*/) override {
    return unused();
  }
  Result<std::uint64_t> place_of(ContainerNumber /*container*/) override { return unused(); }
  Result<void> begin_version(VersionNumber /*number*/) override { return {}; }
  std::optional<std::vector<std::byte>> read_unwritten(ChunkId id) override { return chunk(id); }
  Result<void> flush() override { return {}; }
  Result<void> sync() override { return {}; }
  Result<void> on_seal(VersionNumber /*number*/, const base::IdRuns& /*live*/) override {
    return {};
  }
  Result<void> on_delete(VersionNumber /*number*/) override { return {}; }
  layout::PlacedBytes placed() const override { return {}; }

  static constexpr std::uint32_t kContainerChunks = 16;
  std::atomic<std::uint32_t> unwritten_from{0xffffffff};
  std::atomic<std::uint64_t> located{0};  ///< Number of calls of locate().
  std::atomic<bool> full{false};
  std::atomic<bool> broken{false};
  bool has_pool = false;

 private:
  Result<ChunkId> take(VersionNumber birth, std::vector<test::Bytes>& chunks,
                       std::span<const std::byte> raw) {
    const std::lock_guard lock(mutex_);
    if (full) return Error(ErrorCode::kNoSpace, "the test's disk is full");
    if (broken) return Error(ErrorCode::kIo, "the test's disk fails").with_errno(EIO);
    chunks.emplace_back(raw.begin(), raw.end());
    return ChunkId::make(birth, static_cast<std::uint32_t>(chunks.size() - 1));
  }
  static Error unused() { return {ErrorCode::kUnsupported, "not in this test"}; }
  const std::unique_ptr<const format::FrameCodec> codec_ = format::make_plain_frame_codec({});
  std::mutex mutex_;
  std::vector<test::Bytes> chunks_;
  std::vector<test::Bytes> pool_chunks_;
};

}  // namespace varve::ingest
