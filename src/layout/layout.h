// SPDX-License-Identifier: Apache-2.0
// Where chunks lie: the interface between what is stored and how it is arranged on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/id_runs.h"
#include "format/container.h"
#include "io/file_system.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// A run of consecutive ids that stand one after the other in one container's chunk table.
struct LocationRun {
  ChunkId first;
  std::uint32_t count = 0;
  std::uint64_t raw_bytes = 0;  ///< Of the whole run.
  std::uint32_t container = 0;
  std::uint32_t index = 0;  ///< Of `first` in the container's chunk table.
};

inline constexpr std::size_t kRoomAlignment = io::kDirectAlignment;
/// What ChunkSource::read_once() needs for so many bytes.
constexpr std::size_t room_for(std::size_t bytes) { return io::direct_room(bytes); }

/// What reading needs of a layout. Thread-safe.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  /// The location run that holds `id`. kCorrupt if there is none: somebody refers to a
  /// chunk that is not stored.
  [[nodiscard]] virtual Result<LocationRun> locate(ChunkId id) = 0;

  /// A container's verified head; recently used ones are kept in memory. kStale if the container
  /// is gone since its chunks were located: they are elsewhere now, so locate them again.
  [[nodiscard]] virtual Result<std::shared_ptr<const format::ContainerHead>> head(
      std::uint32_t container) = 0;

  /// Fills `out` with stored bytes from `offset` of the container's data. Not verified:
  /// format::decode_frame() does that. Does not keep anything in memory. kStale as for head().
  [[nodiscard]] virtual Result<void> read_data(std::uint32_t container, std::uint32_t offset,
                                               std::span<std::byte> out) = 0;

  /// As read_data(), for bytes that are hardly asked for again. They stand somewhere in `room`,
  /// which is aligned to kRoomAlignment and has at least room_for(bytes).
  [[nodiscard]] virtual Result<std::span<const std::byte>> read_once(std::uint32_t container,
                                                                     std::uint32_t offset,
                                                                     std::size_t bytes,
                                                                     std::span<std::byte> room) {
    VARVE_TRY(read_data(container, offset, room.first(bytes)));
    return std::span<const std::byte>(room.first(bytes));
  }

  /// The container's head will be read soon. Advice only.
  virtual void will_read_head(std::uint32_t /*container*/) {}
  /// The same of some data, which is then best read by read_data(): read_once() could pass it by.
  virtual void will_read_data(std::uint32_t /*container*/, std::uint32_t /*offset*/,
                              std::size_t /*bytes*/) {}

  /// Where a container lies: ascends from file to file, and in each with its offset; neighbours
  /// that are smaller than a block may share one place. kStale as for head().
  [[nodiscard]] virtual Result<std::uint64_t> place_of(std::uint32_t container) = 0;
};

/// Size in bytes of what was placed.
struct PlacedBytes {
  std::uint64_t raw = 0;
  std::uint64_t stored = 0;  ///< Of the containers written so far, with heads and padding.
};

/// The layout of one series. Thread-safe.
class Layout : public ChunkSource {
 public:
  /// Chunks placed from now on are born in `number`; their ordinals go on after those that
  /// it already has.
  [[nodiscard]] virtual Result<void> begin_version(VersionNumber number) = 0;

  /// Takes a chunk that is new and gives it the next id. `raw` is copied. May wait for the
  /// disk. kNoSpace while the disk is full: then the chunk was not taken.
  [[nodiscard]] virtual Result<ChunkId> place(const Fingerprint& fingerprint,
                                              std::span<const std::byte> raw) = 0;

  /// The raw bytes of a chunk that is placed but not yet readable by locate(), if it is one.
  [[nodiscard]] virtual std::optional<std::vector<std::byte>> read_unwritten(ChunkId id) = 0;

  /// When it returns, everything placed before the call can be read by locate(); it is not
  /// yet on disk for certain.
  [[nodiscard]] virtual Result<void> flush() = 0;

  /// When it returns, everything placed before the call is on disk, and located in the
  /// catalog.
  [[nodiscard]] virtual Result<void> sync() = 0;

  /// The version was sealed; `live` are the chunks that it refers to.
  [[nodiscard]] virtual Result<void> on_seal(VersionNumber number, const base::IdRuns& live) = 0;
  /// The version was deleted or abandoned.
  [[nodiscard]] virtual Result<void> on_delete(VersionNumber number) = 0;

  [[nodiscard]] virtual PlacedBytes placed() const = 0;
  /// Raw bytes of chunks that were placed and are in no file yet. Takes no lock.
  [[nodiscard]] virtual std::uint64_t unwritten_bytes() const { return 0; }
};

}  // namespace varve::layout
