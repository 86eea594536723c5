// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "format/container.h"
#include "restore/look_ahead_window.h"
#include "varve/types.h"

namespace varve::restore {

/// A chunk that is needed, and where it lies.
struct ChunkUse {
  ChunkId id;
  std::uint32_t container = 0;
  std::uint32_t index = 0;  ///< In the container's chunk table.
};

/// What an engine keeps of the decoded bytes that it has read: the part in which engines
/// differ most. Next uses are positions in the look-ahead window, behind what is being
/// assembled. Not synchronised.
class RestoreCache {
 public:
  static constexpr std::uint64_t kNever = LookAheadWindow::kNever;

  virtual ~RestoreCache() = default;

  /// Evicts until `bytes_max` is kept from now on.
  virtual void set_bytes_max(std::size_t bytes_max) = 0;
  /// Bytes that can be kept without evicting anything.
  [[nodiscard]] virtual std::size_t room() const = 0;

  /// The bytes of a kept chunk, valid until the next call; empty if it is not here.
  [[nodiscard]] virtual std::span<const std::byte> find(const ChunkUse& use) = 0;
  [[nodiscard]] virtual bool contains(const ChunkUse& use) const = 0;
  /// A chunk that find() gave was used, and is next needed at `next_use`, or kNever.
  virtual void on_used(ChunkId id, std::uint64_t next_use) = 0;
  /// The window now sees that the chunk is needed at `position`.
  virtual void on_ahead(ChunkId /*id*/, std::uint64_t /*position*/) {}
  /// Everything before `position` is assembled.
  virtual void on_begin(std::uint64_t /*position*/) {}

  /// Whether it wants whole containers, used or not.
  [[nodiscard]] virtual bool keeps_containers() const { return false; }
  /// Whether it wants chunks that were used and that the window does not need again.
  [[nodiscard]] virtual bool keeps_used() const { return false; }
  /// A chunk that was read. `is_used`: something was assembled from it at once.
  virtual void offer(ChunkId /*id*/, std::span<const std::byte> /*raw*/, std::uint64_t /*next_use*/,
                     bool /*is_used*/) {}
  /// A whole frame that was read; only if keeps_containers().
  virtual void offer_frame(const format::ContainerHeader& /*header*/, std::uint32_t /*frame*/,
                           std::span<const std::byte> /*raw*/) {}
};

/// Keeps nothing: forward assembly alone.
class NoCache final : public RestoreCache {
 public:
  void set_bytes_max(std::size_t /*bytes_max*/) override {}
  [[nodiscard]] std::size_t room() const override { return 0; }
  [[nodiscard]] std::span<const std::byte> find(const ChunkUse& /*use*/) override { return {}; }
  [[nodiscard]] bool contains(const ChunkUse& /*use*/) const override { return false; }
  void on_used(ChunkId /*id*/, std::uint64_t /*next_use*/) override {}
};

}  // namespace varve::restore
