// SPDX-License-Identifier: Apache-2.0
// The files of a series with containers: segments of the active set, and volumes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "format/container.h"
#include "format/container_record.h"
#include "store/open_files.h"
#include "store/segment_store.h"
#include "store/unread_parts.h"
#include "varve/result.h"

namespace varve::store {

/// Bounds of a segment's length, which grows with the data of a run. The active set is freed one
/// segment at a time, and each segment costs a file. The lower bound has room for one container.
inline constexpr std::uint64_t kSegmentBytesMin = 4ULL << 20;
inline constexpr std::uint64_t kSegmentBytesMax = 64ULL << 20;
/// Returns the maximum length of a segment of a run of `run_bytes`.
[[nodiscard]] std::uint64_t segment_bytes_for(std::uint64_t run_bytes);

/// Bounds of a segment of a replicated repository: each segment becomes an object, and each object
/// costs requests.
inline constexpr std::uint64_t kReplicatedSegmentBytesMin = 8ULL << 20;
inline constexpr std::uint64_t kReplicatedSegmentBytesMax = 32ULL << 20;
/// Returns the maximum length of the next segment of a replicated run of `run_bytes` so far; at
/// least segment_bytes_for(run_bytes). docs/decisions/109.
[[nodiscard]] std::uint64_t replicated_segment_bytes_for(std::uint64_t run_bytes);

/// The lower bound for a segment written by arranging.
inline constexpr std::uint64_t kArrangedSegmentBytesMin = 1ULL << 20;
/// Returns the maximum length of a segment written by arranging, in an active set of
/// `active_bytes`. Arranged segments are shorter than others, so that later arranging can select
/// frequently changing data more exactly.
[[nodiscard]] std::uint64_t arranged_segment_bytes_for(std::uint64_t active_bytes);

/// Issues unique numbers. After a crash the source may repeat numbers that no commit has named.
/// Errors: kTooLarge if no number is left. Thread-safe.
class NumberSource {
 public:
  [[nodiscard]] Result<ContainerNumber> take_container() {
    return take<ContainerNumber>(next_container_, "container");
  }
  /// Returns a number without kVolumeBit.
  [[nodiscard]] Result<SegmentNumber> take_segment() {
    return take<SegmentNumber>(next_segment_, "file");
  }

  /// Return the next number.
  [[nodiscard]] ContainerNumber next_container() const {
    return static_cast<ContainerNumber>(next_container_.load());
  }
  [[nodiscard]] SegmentNumber next_segment() const {
    return static_cast<SegmentNumber>(next_segment_.load());
  }
  /// Set the next number.
  void set_next(ContainerNumber number) { next_container_ = static_cast<std::uint32_t>(number); }
  void set_next(SegmentNumber number) { next_segment_ = static_cast<std::uint32_t>(number); }

 private:
  [[nodiscard]] static Error no_number_left(std::string_view what);
  template <typename Number>
  static Result<Number> take(std::atomic<std::uint32_t>& next, std::string_view what) {
    auto number = next.load();
    do {
      if (is_last(static_cast<Number>(number))) {
        return no_number_left(what);
      }
    } while (!next.compare_exchange_weak(number, number + 1));
    return static_cast<Number>(number);
  }

  std::atomic<std::uint32_t> next_container_{0};
  std::atomic<std::uint32_t> next_segment_{0};  // Without kVolumeBit.
};

/// Returns the file's name in its folder: NNNNNNNN.seg or NNNNNNNN.vol.
[[nodiscard]] std::string segment_name(SegmentNumber segment);
/// Returns the path below the series' folder: active/NNNNNNNN.seg or volumes/NNNNNNNN.vol.
[[nodiscard]] std::string segment_path(SegmentNumber segment);

/// A read of a batch, with the arguments of SegmentReader::read_once().
struct ContainerRead {
  format::ContainerRecord record;
  std::uint32_t offset = 0;
  std::size_t bytes = 0;
  std::span<std::byte> room;  ///< Must stay valid until the read's completion.
  LentBytes* lent = nullptr;  ///< As RangeRead::lent. The completion gets the lent bytes.
};
/// Receives the position of a read in the batch, and the result, as from read_once().
using ContainerCompletion =
    std::function<void(std::size_t position, Result<std::span<const std::byte>> got)>;

/// Bytes of a container, possibly with unreadable parts.
struct DirectRead {
  std::span<const std::byte> bytes;
  UnreadParts unread;  ///< Parts of `bytes`.
};

/// Reads containers. Thread-safe.
class SegmentReader {
 public:
  /// Reads the containers of a repository with `keys`, null for a plain repository. Caches open
  /// files in `files`; without `files`, in a private cache.
  /// Lifetime: the arguments must outlive the reader.
  SegmentReader(SegmentStore& store, const format::ContainerKeys* keys, OpenFiles* files = nullptr)
      : store_(store),
        keys_(keys),
        own_files_(files == nullptr ? std::make_unique<OpenFiles>(kOwnFilesMax) : nullptr),
        files_(files == nullptr ? *own_files_ : *files) {}
  SegmentReader(const SegmentReader&) = delete;
  SegmentReader& operator=(const SegmentReader&) = delete;
  ~SegmentReader() { files_.forget(store_); }

  /// Reads and verifies a container's header. Asks a distant store twice for a damaged header.
  /// Errors: kCorrupt if the header is damaged, or belongs to another container than the record.
  [[nodiscard]] Result<format::ContainerHeader> read_header(StoreId store_id,
                                                            const format::ContainerRecord& record);
  /// Submits a read as by read_header(). Calls `done` as SegmentStore::read_many().
  void read_header_later(StoreId store_id, const format::ContainerRecord& record,
                         const std::function<void(Result<format::ContainerHeader>)>& done);
  /// Reads stored bytes from `offset` of the container's data, without verification.
  [[nodiscard]] Result<void> read_data(const format::ContainerRecord& record, std::uint32_t offset,
                                       std::span<std::byte> out);
  /// Reads as read_data(), for bytes unlikely to be read again: past the page cache, unless the
  /// bytes are cached. Returns a view into `room`, which is aligned for direct access and has at
  /// least room_for(bytes).
  [[nodiscard]] Result<std::span<const std::byte>> read_once(const format::ContainerRecord& record,
                                                             std::uint32_t offset,
                                                             std::size_t bytes,
                                                             std::span<std::byte> room);
  /// Reads as read_once(), but always past the page cache: the bytes on the disk.
  [[nodiscard]] Result<std::span<const std::byte>> read_direct(
      const format::ContainerRecord& record, std::uint32_t offset, std::size_t bytes,
      std::span<std::byte> room);
  /// Reads as read_data(), around unreadable parts. Returns the unreadable parts, where the bytes
  /// of `out` are unspecified. Errors: the errors of store::read_around(), never damage of the
  /// bytes.
  [[nodiscard]] Result<UnreadParts> read_around(const format::ContainerRecord& record,
                                                std::uint32_t offset, std::span<std::byte> out);
  /// Reads as read_around(), past the page cache as read_direct(). The range may have the padding.
  [[nodiscard]] Result<DirectRead> read_direct_around(const format::ContainerRecord& record,
                                                      std::uint32_t offset, std::size_t bytes,
                                                      std::span<std::byte> room);
  /// Submits the reads together, past the page cache. Calls `done` as SegmentStore::read_many().
  void read_many(const std::vector<ContainerRead>& reads, const ContainerCompletion& done);
  /// Returns whether the files are in a distant store: see SegmentStore.
  [[nodiscard]] bool answers_later() const { return store_.answers_later(); }
  /// Announce reads in the near future of the container's header, the whole container, or a part of
  /// its data.
  void will_read_header(const format::ContainerRecord& record);
  void will_read_all(const format::ContainerRecord& record);
  void will_read_data(const format::ContainerRecord& record, std::uint32_t offset,
                      std::size_t bytes);
  /// Drops the cached bytes of a container, as OpenSegment::drop(). Limits the drops of a
  /// permanently damaged container per period, so that readers do not ask the store forever.
  [[nodiscard]] bool drop(const format::ContainerRecord& record);
  /// Reads the bytes between the container's data and its end.
  [[nodiscard]] Result<std::vector<std::byte>> read_padding(const format::ContainerRecord& record);
  /// Closes a removed or shortened file.
  void forget(SegmentNumber segment);
  /// Returns the path of a container's file and its offset, for messages.
  [[nodiscard]] std::string describe(const format::ContainerRecord& record) const;

 private:
  /// The blocks around a part of a container's data.
  struct Blocks {
    std::shared_ptr<OpenSegment> file;
    std::uint64_t begin = 0;
    std::size_t before = 0;  ///< Bytes of the first block before the part.
    std::size_t bytes = 0;
  };
  /// Returns the blocks of a range that the caller has checked.
  [[nodiscard]] Result<Blocks> blocks_of(const format::ContainerRecord& record,
                                         std::uint32_t offset, std::size_t bytes,
                                         std::span<std::byte> room);
  [[nodiscard]] Result<void> check_range(const format::ContainerRecord& record,
                                         std::uint32_t offset, std::size_t bytes) const;
  [[nodiscard]] Result<format::ContainerHeader> decode_header(StoreId store_id,
                                                              const format::ContainerRecord& record,
                                                              std::span<const std::byte> bytes,
                                                              std::size_t got) const;
  [[nodiscard]] Error ends_early(const format::ContainerRecord& record) const;
  [[nodiscard]] Result<UnreadParts> read_pieces(const format::ContainerRecord& record,
                                                OpenSegment& from, std::uint64_t offset,
                                                std::span<std::byte> out) const;
  [[nodiscard]] Result<std::shared_ptr<OpenSegment>> file(SegmentNumber segment,
                                                          ReadMode mode = ReadMode::kPlanned);

  /// The number of drops of a container since a time.
  struct Drops {
    std::chrono::steady_clock::time_point since{};
    unsigned count = 0;
  };
  using Place = std::pair<SegmentNumber, std::uint64_t>;

  static constexpr std::size_t kOwnFilesMax = 256;
  SegmentStore& store_;
  const format::ContainerKeys* const keys_;
  const std::unique_ptr<OpenFiles> own_files_;
  OpenFiles& files_;
  std::mutex drops_mutex_;  // Guards drops_.
  std::map<Place, Drops> drops_;
};

}  // namespace varve::store
