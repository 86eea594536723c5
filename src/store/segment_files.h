// SPDX-License-Identifier: Apache-2.0
// The files of one series that hold containers: segments of the active set, and volumes.
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

/// Bounds of a segment that becomes an object of an object store, where each object costs requests.
inline constexpr std::uint64_t kReplicatedSegmentBytesMin = 8ULL << 20;
inline constexpr std::uint64_t kReplicatedSegmentBytesMax = 32ULL << 20;
/// Returns the maximum length of the next segment of such a run that has `run_bytes` already. It is
/// at least segment_bytes_for(run_bytes). docs/decisions/109.
[[nodiscard]] std::uint64_t replicated_segment_bytes_for(std::uint64_t run_bytes);

/// The lower bound for a segment that arranging writes.
inline constexpr std::uint64_t kArrangedSegmentBytesMin = 1ULL << 20;
/// Returns the maximum length of a segment that arranging writes, in an active set of
/// `active_bytes`. It is shorter than other segments, so that later arranging can choose the data
/// that changes often more exactly.
[[nodiscard]] std::uint64_t arranged_segment_bytes_for(std::uint64_t active_bytes);

/// Gives each number once. After a crash it may repeat numbers that no commit has named.
/// Thread-safe.
class NumberSource {
 public:
  [[nodiscard]] ContainerNumber take_container() {
    return static_cast<ContainerNumber>(next_container_.fetch_add(1));
  }
  /// Returns a number without kVolumeBit.
  [[nodiscard]] SegmentNumber take_segment() {
    return static_cast<SegmentNumber>(next_segment_.fetch_add(1));
  }

  /// Return the number that is taken next.
  [[nodiscard]] ContainerNumber next_container() const {
    return static_cast<ContainerNumber>(next_container_.load());
  }
  [[nodiscard]] SegmentNumber next_segment() const {
    return static_cast<SegmentNumber>(next_segment_.load());
  }
  /// Set the number that is taken next.
  void set_next(ContainerNumber number) { next_container_ = static_cast<std::uint32_t>(number); }
  void set_next(SegmentNumber number) { next_segment_ = static_cast<std::uint32_t>(number); }

 private:
  std::atomic<std::uint32_t> next_container_{0};
  std::atomic<std::uint32_t> next_segment_{0};  // Without kVolumeBit.
};

/// Returns the file's name in its folder: NNNNNNNN.seg or NNNNNNNN.vol.
[[nodiscard]] std::string segment_name(SegmentNumber segment);
/// Returns the path below the series' folder: active/NNNNNNNN.seg or volumes/NNNNNNNN.vol.
[[nodiscard]] std::string segment_path(SegmentNumber segment);

/// One read of a batch: as the arguments of SegmentReader::read_once().
struct ContainerRead {
  format::ContainerRecord record;
  std::uint32_t offset = 0;
  std::size_t bytes = 0;
  std::span<std::byte> room;  ///< Must stay valid until the read's completion.
  LentBytes* lent = nullptr;  ///< As RangeRead::lent. The completion gets the lent bytes.
};
/// Receives the position of a read in its batch, and the result of reading it as by read_once().
using ContainerCompletion =
    std::function<void(std::size_t position, Result<std::span<const std::byte>> got)>;

/// Bytes of a container, of which some may be unreadable.
struct DirectRead {
  std::span<const std::byte> bytes;
  UnreadParts unread;  ///< Parts of `bytes`.
};

/// Reads containers. Thread-safe.
class SegmentReader {
 public:
  /// Reads the containers of a repository with these `keys`, which are null if it is plain. Keeps
  /// the files that it reads open in `files`; without `files`, it has some of its own.
  /// Lifetime: the arguments must outlive the reader.
  SegmentReader(SegmentStore& store, const format::ContainerKeys* keys, OpenFiles* files = nullptr)
      : store_(store),
        keys_(keys),
        own_files_(files == nullptr ? std::make_unique<OpenFiles>(kOwnFilesMax) : nullptr),
        files_(files == nullptr ? *own_files_ : *files) {}
  SegmentReader(const SegmentReader&) = delete;
  SegmentReader& operator=(const SegmentReader&) = delete;
  ~SegmentReader() { files_.forget(store_); }

  /// Reads and verifies a container's header. Asks a distant store twice for a damaged one.
  /// Errors: kCorrupt if it is damaged, or another container than the record describes.
  [[nodiscard]] Result<format::ContainerHeader> read_header(StoreId store_id,
                                                            const format::ContainerRecord& record);
  /// Submits a read as by read_header(). Calls `done` as SegmentStore::read_many().
  void read_header_later(StoreId store_id, const format::ContainerRecord& record,
                         const std::function<void(Result<format::ContainerHeader>)>& done);
  /// Reads stored bytes from `offset` of the container's data, without verifying them.
  [[nodiscard]] Result<void> read_data(const format::ContainerRecord& record, std::uint32_t offset,
                                       std::span<std::byte> out);
  /// Reads as read_data(), for bytes that are unlikely to be read again: past the page cache,
  /// unless it has them. Returns a view into `room`, which is aligned for direct access and has at
  /// least room_for(bytes).
  [[nodiscard]] Result<std::span<const std::byte>> read_once(const format::ContainerRecord& record,
                                                             std::uint32_t offset,
                                                             std::size_t bytes,
                                                             std::span<std::byte> room);
  /// Reads as read_once(), but always past the page cache: the bytes that the disk has.
  [[nodiscard]] Result<std::span<const std::byte>> read_direct(
      const format::ContainerRecord& record, std::uint32_t offset, std::size_t bytes,
      std::span<std::byte> room);
  /// Reads as read_data(), around what cannot be read: returns these parts, where `out` has any
  /// bytes. Errors: those that are no damage of the bytes, as of store::read_around().
  [[nodiscard]] Result<UnreadParts> read_around(const format::ContainerRecord& record,
                                                std::uint32_t offset, std::span<std::byte> out);
  /// Reads as read_around(), past the page cache as read_direct().
  [[nodiscard]] Result<DirectRead> read_direct_around(const format::ContainerRecord& record,
                                                      std::uint32_t offset, std::size_t bytes,
                                                      std::span<std::byte> room);
  /// Submits the reads together, past the page cache. Calls `done` as SegmentStore::read_many().
  void read_many(const std::vector<ContainerRead>& reads, const ContainerCompletion& done);
  /// Returns whether the files are in a distant store: see SegmentStore.
  [[nodiscard]] bool answers_later() const { return store_.answers_later(); }
  /// Announce that the container's header, all of it, or a part of its data will be read soon.
  void will_read_header(const format::ContainerRecord& record);
  void will_read_all(const format::ContainerRecord& record);
  void will_read_data(const format::ContainerRecord& record, std::uint32_t offset,
                      std::size_t bytes);
  /// Drops what is kept of a container, as OpenSegment::drop(). A container that stays damaged is
  /// dropped only some times in a while, so that its readers do not ask for ever.
  [[nodiscard]] bool drop(const format::ContainerRecord& record);
  /// Reads the bytes between the container's data and its end.
  [[nodiscard]] Result<std::vector<std::byte>> read_padding(const format::ContainerRecord& record);
  /// Closes a file that was removed or shortened.
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

  /// How often a container was dropped since a time.
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
