// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "format/container.h"
#include "restore/look_ahead_window.h"
#include "varve/types.h"

namespace varve::restore {

/// A needed chunk and its place.
struct ChunkUse {
  ChunkId id;
  ContainerNumber container{};
  std::uint32_t index = 0;  ///< Index in the container's chunk table.
};

/// A chunk that the engine is about to read and the window needs again.
struct PlannedChunk {
  ContainerNumber container{};
  std::uint32_t frame = 0;  ///< 0 if the engine reads whole containers.
  std::size_t bytes = 0;
  std::size_t read_bytes = 0;  ///< Size of the read of the frame, or of the container.
  std::uint64_t next_use = 0;
};

/// Keeps decoded chunks for later areas. The cache is the main difference between engines. Next
/// uses are positions in the look-ahead window, after the areas under assembly. Not thread-safe.
class RestoreCache {
 public:
  static constexpr std::uint64_t kNever = LookAheadWindow::kNever;

  virtual ~RestoreCache() = default;

  /// Sets the limit, and evicts until the cache is within the limit.
  virtual void set_bytes_max(std::size_t bytes_max) = 0;
  /// Returns the number of bytes that fit without evicting an F-chunk. A cache without F-chunk
  /// tracking returns its limit.
  [[nodiscard]] virtual std::size_t room() const = 0;

  /// Returns the bytes of a chunk, valid until the next call; empty if the chunk is not cached.
  [[nodiscard]] virtual std::span<const std::byte> find(const ChunkUse& use) = 0;
  [[nodiscard]] virtual bool contains(const ChunkUse& use) const = 0;
  /// Records a use of a chunk from find(), with the next use at `next_use` or kNever.
  virtual void on_used(ChunkId id, std::uint64_t next_use) = 0;
  /// Notes that the window has reached a use of the chunk, at `position`.
  virtual void on_ahead(ChunkId /*id*/, std::uint64_t /*position*/) {}
  /// Notes that the areas under assembly contain everything before `position`. The cached chunks of
  /// the areas are copied, and the engine now reads the missing chunks.
  virtual void on_entered(std::uint64_t /*position*/) {}

  /// Returns whether the engine must announce its reads to the cache.
  [[nodiscard]] virtual bool chooses_in_advance() const { return false; }
  /// Announces a chunk that the engine is about to read. Called only if chooses_in_advance().
  virtual void on_planned(ChunkId /*id*/, const PlannedChunk& /*chunk*/) {}
  /// Notes that all chunks of an area are announced. Offers follow.
  virtual void on_all_planned() {}
  /// Sets the estimated number of chunks of an area.
  virtual void set_area_chunks(std::uint64_t /*chunks*/) {}

  /// Returns whether the cache wants whole containers, used or not.
  [[nodiscard]] virtual bool keeps_containers() const { return false; }
  /// Returns whether the cache wants used chunks that the window does not need again.
  [[nodiscard]] virtual bool keeps_used() const { return false; }
  /// Offers a chunk after its read. `is_used`: an area uses the chunk already.
  virtual void offer(ChunkId /*id*/, std::span<const std::byte> /*raw*/, std::uint64_t /*next_use*/,
                     bool /*is_used*/) {}
  /// Offers a whole frame after its read. Called only if keeps_containers().
  virtual void offer_frame(const format::ContainerHeader& /*header*/, std::uint32_t /*frame*/,
                           std::span<const std::byte> /*raw*/) {}
};

/// Keeps nothing, for forward assembly alone.
class NoCache final : public RestoreCache {
 public:
  void set_bytes_max(std::size_t /*bytes_max*/) override {}
  [[nodiscard]] std::size_t room() const override { return 0; }
  [[nodiscard]] std::span<const std::byte> find(const ChunkUse& /*use*/) override { return {}; }
  [[nodiscard]] bool contains(const ChunkUse& /*use*/) const override { return false; }
  void on_used(ChunkId /*id*/, std::uint64_t /*next_use*/) override {}
};

}  // namespace varve::restore
