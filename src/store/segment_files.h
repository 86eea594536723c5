// SPDX-License-Identifier: Apache-2.0
// The files of one series that hold containers: segments of the active set, and volumes.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "format/container.h"
#include "format/ids.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::store {

/// Segments grow with what is written, between these lengths: the active set is given back a
/// segment at a time, and each one costs a file. The shorter one has room for one container.
inline constexpr std::uint64_t kSegmentBytesMin = 4ULL << 20;
inline constexpr std::uint64_t kSegmentBytesMax = 64ULL << 20;
/// How long a segment of a run of `run_bytes` may get.
[[nodiscard]] std::uint64_t segment_bytes_for(std::uint64_t run_bytes);

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

/// Where a container lies, and what it holds. The catalog keeps one for each container.
struct ContainerRecord {
  ContainerNumber number{};
  SegmentNumber segment{};
  std::uint64_t offset = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t data_bytes = 0;
  std::uint32_t chunks = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t live_bytes = 0;  ///< Raw bytes of the chunks that are located here.
  bool compact = false;          ///< As in format::ContainerHeader.
  VersionNumber birth{};         ///< Birth of its first chunk; in a volume, of all chunks.

  /// Of the container with this header, of which nothing counts as live yet.
  [[nodiscard]] static ContainerRecord of(const format::ContainerHeader& header,
                                          SegmentNumber segment, std::uint64_t offset);
  [[nodiscard]] std::uint64_t end() const;
  [[nodiscard]] std::string encode() const;
  /// kCorrupt unless every length and offset is possible.
  [[nodiscard]] static Result<ContainerRecord> decode(ContainerNumber number,
                                                      std::string_view bytes);
};

/// The file's name in its folder: NNNNNNNN.seg or NNNNNNNN.vol.
[[nodiscard]] std::string segment_name(SegmentNumber segment);
/// With the folder below the series': active/NNNNNNNN.seg or volumes/NNNNNNNN.vol.
[[nodiscard]] std::string segment_path(SegmentNumber segment);

/// Reads containers. Thread-safe. Keeps a bounded number of files open.
class SegmentReader {
 public:
  /// `directory` is the series' own. `files` must outlive the reader.
  SegmentReader(io::FileSystem& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  /// Reads and verifies a container's header. kCorrupt if it is damaged or not the container
  /// that the record describes.
  [[nodiscard]] Result<format::ContainerHeader> read_header(SeriesId series,
                                                            const ContainerRecord& record);
  /// Stored bytes from `offset` of the container's data; not verified.
  [[nodiscard]] Result<void> read_data(const ContainerRecord& record, std::uint32_t offset,
                                       std::span<std::byte> out);
  /// As read_data(), for bytes that are hardly asked for again: past the page cache, unless it has
  /// them. They stand somewhere in `room`, which is aligned for direct access and has at least
  /// io::direct_room(bytes).
  [[nodiscard]] Result<std::span<const std::byte>> read_once(const ContainerRecord& record,
                                                             std::uint32_t offset,
                                                             std::size_t bytes,
                                                             std::span<std::byte> room);
  /// The same, past the page cache in any case: what the disk has.
  [[nodiscard]] Result<std::span<const std::byte>> read_direct(const ContainerRecord& record,
                                                               std::uint32_t offset,
                                                               std::size_t bytes,
                                                               std::span<std::byte> room);
  /// The container's header, or so much of its data, will be read soon.
  void will_read_header(const ContainerRecord& record);
  void will_read_data(const ContainerRecord& record, std::uint32_t offset, std::size_t bytes);
  /// kCorrupt if the zeros that pad the container are missing or not zero.
  [[nodiscard]] Result<void> verify_padding(const ContainerRecord& record);
  /// Closes a file that is gone, or has become shorter.
  void forget(SegmentNumber segment);
  /// The path of a container's file and its offset, for messages.
  [[nodiscard]] std::string describe(const ContainerRecord& record) const;

 private:
  [[nodiscard]] Result<void> check_range(const ContainerRecord& record, std::uint32_t offset,
                                         std::size_t bytes) const;
  [[nodiscard]] Error ends_early(const ContainerRecord& record) const;
  using OpenFiles = std::unordered_map<SegmentNumber, std::shared_ptr<io::File>>;
  [[nodiscard]] Result<std::shared_ptr<io::File>> file(SegmentNumber segment) {
    return file(segment, open_, io::OpenMode::kReadPlanned);
  }
  [[nodiscard]] Result<std::shared_ptr<io::File>> file(SegmentNumber segment, OpenFiles& among,
                                                       io::OpenMode mode);

  static constexpr std::size_t kOpenFilesMax = 256;
  io::FileSystem& files_;
  const std::string directory_;
  std::mutex mutex_;
  OpenFiles open_;
  OpenFiles open_direct_;        // The same files, for read_once().
  std::uint64_t forgotten_ = 0;  // Calls of forget().
};

}  // namespace varve::store
