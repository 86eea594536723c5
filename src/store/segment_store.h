// SPDX-License-Identifier: Apache-2.0
// The interface to the stored files of a series: segments, volumes and parity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::store {

/// Alignment of direct reads and of the parts of a segment, in bytes.
inline constexpr std::size_t kBlockBytes = 4096;
/// Returns `bytes`, rounded up to whole blocks.
constexpr std::size_t whole_blocks(std::size_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}
/// Returns the buffer size for direct reads of `bytes` bytes at any offset.
constexpr std::size_t room_for(std::size_t bytes) { return whole_blocks(bytes + kBlockBytes); }

/// Names a file of a segment store: a segment or volume, or the parity of a group.
using StoredFile = std::variant<SegmentNumber, GroupNumber>;

enum class StoredKind : std::uint8_t { kSegments, kVolumes, kGroups };

/// Returns the kind of a file.
[[nodiscard]] StoredKind kind_of(StoredFile file);

/// The use of the page cache by reads of an open file. Ignored by stores without a page cache.
enum class ReadMode : std::uint8_t {
  kCached,   ///< Through the cache, with read-ahead.
  kPlanned,  ///< Through the cache, without read-ahead: the caller plans the requests.
  kDirect,   ///< Past the cache: offset, length and memory aligned to kBlockBytes.
};

struct RangeRead;
/// The reads of one read_many() that need an object store. Defined by the room with that store.
struct DistantBatch;

/// A file open for reading. Thread-safe.
class OpenSegment {
 public:
  virtual ~OpenSegment() = default;
  /// Fills `out`. Returns fewer bytes only where the file ends.
  /// Errors: kUnavailable if the store does not answer now; the caller may try again.
  [[nodiscard]] virtual Result<std::size_t> read_at(std::uint64_t offset,
                                                    std::span<std::byte> out) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> size() = 0;
  /// Announces a read of the range in the near future. Advice only.
  virtual void will_read(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {}
  /// Drops the cached bytes of a range, because part of the range is damaged: a distant store may
  /// have sent altered bytes. Returns whether the next read asks the store again.
  [[nodiscard]] virtual bool drop(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {
    return false;
  }
  /// Returns whether reading the range needs no request; false also if unknown to the store.
  [[nodiscard]] virtual bool is_cached(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) {
    return false;
  }
  /// Adds the read of a range of the file to `batch`. Returns false, and adds nothing, if the bytes
  /// are on the disk. Only for read_many() of the store that opened the file.
  [[nodiscard]] virtual bool add_to(DistantBatch& /*batch*/, const RangeRead& /*range*/) {
    return false;
  }
};

/// Bytes in a store's memory.
/// Lifetime: the bytes are valid and do not change while `holder` exists.
struct LentBytes {
  std::span<const std::byte> bytes{};
  std::shared_ptr<const void> holder{};
};

/// A range of a batch of reads.
struct RangeRead {
  std::shared_ptr<OpenSegment> file;
  std::uint64_t offset = 0;
  std::span<std::byte> out;  ///< Must stay valid until the range's completion.
  /// If not null, the store may lend the bytes instead of filling `out`. Must stay valid as `out`.
  LentBytes* lent = nullptr;
};
/// Receives the position of a range in the batch, and the result, as from read_at().
using ReadCompletion = std::function<void(std::size_t position, Result<std::size_t> got)>;

/// Writes a new file from start to end. Not thread-safe.
class SegmentAppender {
 public:
  virtual ~SegmentAppender() = default;
  /// Appends the parts, one after the other. In a segment, the memory and the length of each part
  /// are aligned to kBlockBytes. After an error the file's end is unchanged, and the caller may
  /// append again.
  [[nodiscard]] virtual Result<void> append(std::span<const std::span<const std::byte>> parts) = 0;
};

/// Correct bytes for a place of a file.
struct Correction {
  std::uint64_t offset = 0;
  std::vector<std::byte> bytes;
};

/// The files of one series. Thread-safe; calls that change the same file must not overlap.
///
/// A file is written once, from start to end, and then only cut, corrected or removed. A crash may
/// lose appended bytes until sync() and sync_names() have returned.
class SegmentStore {
 public:
  virtual ~SegmentStore() = default;

  /// Prepares a store of a new series for its first file. A prepared store is no error.
  [[nodiscard]] virtual Result<void> prepare() = 0;

  /// Opens a file for reading. Errors: kNotFound, kUnavailable.
  [[nodiscard]] virtual Result<std::shared_ptr<OpenSegment>> open(StoredFile file,
                                                                  ReadMode mode) = 0;
  /// Reads ranges of open files, in any order, and calls `done` once for each range. The calls come
  /// from the calling thread or from other threads, before or after read_many() returns, possibly
  /// concurrently.
  /// Lifetime: the store must outlive the last call of `done`.
  virtual void read_many(std::vector<RangeRead> ranges, ReadCompletion done) = 0;
  /// Returns true for a distant store, whose reads have a long latency and run in parallel: callers
  /// then submit all reads at once by read_many(). A distant store may also be unavailable for a
  /// while. The store itself repeats unanswered requests; kUnavailable means that the store has
  /// given up.
  [[nodiscard]] virtual bool answers_later() const { return false; }

  /// Returns the maximum length of the next segment of a run of `run_bytes` so far, for the data
  /// stored by versions. Arranging chooses lengths independently.
  [[nodiscard]] virtual std::uint64_t segment_bytes(std::uint64_t run_bytes) const;

  /// Starts a file. Empties an existing file of the same number, left by a crash.
  [[nodiscard]] virtual Result<std::unique_ptr<SegmentAppender>> create(SegmentNumber segment) = 0;
  /// Waits until the bytes of a file are on disk.
  [[nodiscard]] virtual Result<void> sync(StoredFile file) = 0;
  /// Waits until the names of created and removed files are on disk.
  [[nodiscard]] virtual Result<void> sync_names(StoredKind kind) = 0;
  /// Writes bytes of the file again, because a sync failed and the disk may lack the bytes.
  [[nodiscard]] virtual Result<void> write_again(SegmentNumber segment, std::uint64_t offset,
                                                 std::span<const std::byte> bytes) = 0;

  /// Writes a whole file and waits until the file is on disk. After a crash, either the whole file
  /// or no file exists.
  [[nodiscard]] virtual Result<void> put(StoredFile file,
                                         std::span<const std::span<const std::byte>> parts) = 0;
  /// Corrects damaged ranges and waits until the corrections are on disk. Creates a missing file,
  /// with zeros outside the ranges. Even after a failure, each range has its old or its new bytes,
  /// and all bytes outside the ranges are unchanged. Errors: kIo if the ranges could not be
  /// written.
  [[nodiscard]] virtual Result<void> correct(StoredFile file,
                                             const std::vector<Correction>& corrections) = 0;

  /// Shortens a file to the first `bytes`. Errors: kNotFound.
  [[nodiscard]] virtual Result<void> cut(StoredFile file, std::uint64_t bytes) = 0;
  /// Removes a file. Errors: kNotFound.
  [[nodiscard]] virtual Result<void> remove(StoredFile file) = 0;
  /// Removes the leftovers of interrupted calls of put() and correct().
  [[nodiscard]] virtual Result<void> remove_unfinished(StoredKind kind) = 0;

  /// Returns all files of a kind, in any order. Unfinished files are not listed.
  [[nodiscard]] virtual Result<std::vector<StoredFile>> list(StoredKind kind) = 0;
  /// Returns the length of a file in bytes. Errors: kNotFound.
  [[nodiscard]] virtual Result<std::uint64_t> size(StoredFile file) = 0;
  /// Returns the space of the medium.
  [[nodiscard]] virtual Result<SpaceInfo> space() = 0;

  /// Returns the place of the store, or of a file, for messages.
  [[nodiscard]] virtual std::string describe() const = 0;
  [[nodiscard]] virtual std::string describe(StoredFile file) const = 0;
};

}  // namespace varve::store
