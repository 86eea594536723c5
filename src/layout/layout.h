// SPDX-License-Identifier: Apache-2.0
// The interface between the stored chunks and their arrangement on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/id_runs.h"
#include "base/ids.h"
#include "base/system_error.h"
#include "format/container.h"
#include "format/frame_codec.h"
#include "store/segment_store.h"
#include "store/unread_parts.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::layout {

/// A run of consecutive ids, with consecutive entries in the chunk table of a container.
struct LocationRun {
  ChunkId first;
  std::uint32_t count = 0;
  std::uint64_t raw_bytes = 0;  ///< Raw size of the whole run; 0 if only the container knows it.
  ContainerNumber container{};
  std::uint32_t index = 0;  ///< Index of `first` in the container's chunk table.
  ChunkId stored = first;   ///< The id of `first` in the table: differs from `first` for an alias.
};

/// Consecutive chunks, by the ids in the containers' tables.
struct StoredRun {
  ChunkId first;
  std::uint32_t count = 0;
};

inline constexpr std::size_t kRoomAlignment = store::kBlockBytes;
/// Returns the size of the buffer that ChunkSource::read_once() needs for `bytes` bytes.
constexpr std::size_t room_for(std::size_t bytes) { return store::room_for(bytes); }

/// One read of a batch: as the arguments of ChunkSource::read_once().
struct DataRead {
  ContainerNumber container{};
  std::uint32_t offset = 0;
  std::size_t bytes = 0;
  std::span<std::byte> room;  ///< Must stay valid until the read's completion.
  /// If not null, the source may lend the bytes instead of reading the bytes into `room`: `lent`
  /// then has a holder, and the completion gets the lent bytes. Must stay valid as `room`.
  store::LentBytes* lent = nullptr;
};
/// Receives the position of a read in the batch, and the result as from read_once().
using DataCompletion =
    std::function<void(std::size_t position, Result<std::span<const std::byte>> got)>;

/// The part of a layout that readers need. Thread-safe.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  /// Returns the codec of the source's frames.
  /// Lifetime: the codec outlives the source.
  [[nodiscard]] virtual const format::FrameCodec& codec() const = 0;

  /// Returns the location run that holds `id`.
  /// Errors: kCorrupt if there is none, because a reference then leads to a chunk that is not
  /// stored.
  [[nodiscard]] virtual Result<LocationRun> locate(ChunkId id) = 0;

  /// Returns the ids under which the first chunks of a run are stored: all chunks of the run, or as
  /// many as are consecutive in storage. `run` is not empty. A chunk may become an alias at any
  /// time. So a caller that keeps the ids locates the chunk again if the container's table has a
  /// different id.
  [[nodiscard]] virtual Result<StoredRun> stored_run(const base::IdRun& run) {
    return StoredRun{run.first, run.count};
  }

  /// Returns a container's verified header. Caches recently used headers.
  /// Errors: kStale if the container was removed after the caller located its chunks. The chunks
  /// have moved, so the caller locates them again.
  [[nodiscard]] virtual Result<std::shared_ptr<const format::ContainerHeader>> header(
      ContainerNumber container) = 0;

  /// Fills `out` with stored bytes from `offset` of the container's data. Does not verify the
  /// bytes, as codec() does that, and does not cache the bytes.
  /// Errors: kStale as for header().
  [[nodiscard]] virtual Result<void> read_data(ContainerNumber container, std::uint32_t offset,
                                               std::span<std::byte> out) = 0;

  /// Reads as read_data(), around unreadable bytes. Returns the unreadable parts; the content of
  /// `out` in these parts is undefined.
  /// Errors: kStale, and all errors except damage of the bytes.
  [[nodiscard]] virtual Result<store::UnreadParts> read_around(ContainerNumber container,
                                                               std::uint32_t offset,
                                                               std::span<std::byte> out) {
    store::UnreadParts unread;
    const auto read = read_data(container, offset, out);
    if (!read && !base::is_damage(read.error())) return read.error();
    if (!read) unread.add(0, out.size(), read.error());
    return unread;
  }

  /// Reads as read_data(), for bytes that are unlikely to be read again. Returns a view into
  /// `room`. `room` is aligned to kRoomAlignment and has at least room_for(bytes).
  [[nodiscard]] virtual Result<std::span<const std::byte>> read_once(ContainerNumber container,
                                                                     std::uint32_t offset,
                                                                     std::size_t bytes,
                                                                     std::span<std::byte> room) {
    VARVE_TRY(read_data(container, offset, room.first(bytes)));
    return std::span<const std::byte>(room.first(bytes));
  }

  /// Returns whether the data is in a distant store, so that reads should be submitted together.
  [[nodiscard]] virtual bool answers_later() const { return false; }
  /// Reads a batch in any order, and calls `done` once for each read. The calls come from any
  /// thread, before or after read_many() returns, possibly concurrently.
  /// Lifetime: the source must outlive the last call of `done`.
  virtual void read_many(const std::vector<DataRead>& reads, const DataCompletion& done) {
    for (std::size_t i = 0; i < reads.size(); ++i) {
      done(i, read_once(reads[i].container, reads[i].offset, reads[i].bytes, reads[i].room));
    }
  }

  /// Drops the cached data of a container, because bytes of the container are damaged. Returns
  /// whether the next read asks a distant store again: the bytes may have been damaged on their
  /// way.
  [[nodiscard]] virtual bool drop(ContainerNumber /*container*/) { return false; }
  /// Notes that reading and decoding a frame ended with `error`, from a distant store twice.
  /// Ignores errors that are no damage.
  virtual void note_damage(const format::ContainerHeader& /*header*/, std::uint32_t /*frame*/,
                           const Error& /*error*/) {}

  /// Announces a read of the container's header in the near future. Advice only.
  virtual void will_read_header(ContainerNumber /*container*/) {}
  /// Announces a read of most of the container in the near future. A distant store requests the
  /// whole container at once, header and data. Advice only.
  virtual void will_read_all(ContainerNumber container) { will_read_header(container); }
  /// Announces a read of `count` chunks from `index` of the container's table in the near future.
  /// The caller need not know the header: if the header is not cached, a distant store is asked for
  /// the header, and at once for the data near the estimated place of the chunks. Advice only.
  virtual void will_read_chunks(ContainerNumber /*container*/, std::uint32_t /*index*/,
                                std::uint32_t /*count*/) {}
  /// Announces a read of some data in the near future. The caller should then read with
  /// read_data(), because read_once() may bypass the announced bytes.
  virtual void will_read_data(ContainerNumber /*container*/, std::uint32_t /*offset*/,
                              std::size_t /*bytes*/) {}

  /// Returns the place of a container: a number that ascends from file to file, and within a file
  /// with the offset. Neighbouring containers smaller than a block may share a place.
  /// Errors: kStale as for header().
  [[nodiscard]] virtual Result<std::uint64_t> place_of(ContainerNumber container) = 0;
};

/// Size of the placed chunks, in bytes.
struct PlacedBytes {
  std::uint64_t raw = 0;
  std::uint64_t stored = 0;  ///< Size of the containers written so far, with headers and padding.
};

/// The layout of one series. Thread-safe.
class Layout : public ChunkSource {
 public:
  /// Starts or continues a version: chunks placed from now on are born in `number`. Their ordinals
  /// continue after the ordinals of the version's existing chunks.
  [[nodiscard]] virtual Result<void> begin_version(VersionNumber number) = 0;

  /// Stores a new chunk under the next id, and returns the id. Copies `raw`. May wait for the disk.
  /// Errors: kNoSpace while the disk is full; then the chunk was not stored.
  [[nodiscard]] virtual Result<ChunkId> place(const Fingerprint& fingerprint,
                                              std::span<const std::byte> raw) = 0;

  /// Stores a new chunk to be shared by several series: in the pool, if the layout has a pool.
  /// Otherwise as place().
  [[nodiscard]] virtual Result<ChunkId> place_shared(const Fingerprint& fingerprint,
                                                     std::span<const std::byte> raw) {
    return place(fingerprint, raw);
  }

  /// Returns the raw bytes of a placed chunk that locate() does not find yet; else nullopt.
  [[nodiscard]] virtual std::optional<std::vector<std::byte>> read_unwritten(ChunkId id) = 0;

  /// Waits until locate() finds everything placed before the call. The chunks may not be on disk
  /// yet.
  [[nodiscard]] virtual Result<void> flush() = 0;

  /// Waits until everything placed before the call is on disk, and located in the catalog.
  [[nodiscard]] virtual Result<void> sync() = 0;

  /// Handles the seal of a version; `live` are the chunks to which the version refers.
  [[nodiscard]] virtual Result<void> on_seal(VersionNumber number, const base::IdRuns& live) = 0;
  /// Handles the deletion or the abandoning of a version.
  [[nodiscard]] virtual Result<void> on_delete(VersionNumber number) = 0;

  [[nodiscard]] virtual PlacedBytes placed() const = 0;
  /// Returns the raw bytes of the placed chunks that are in no file yet. Takes no lock.
  [[nodiscard]] virtual std::uint64_t unwritten_bytes() const { return 0; }
};

}  // namespace varve::layout
