// SPDX-License-Identifier: Apache-2.0
// The segment files of one series: append-only runs of containers.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "format/container.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::store {

/// A segment gets no further container once it is this long.
inline constexpr std::uint64_t kSegmentBytesMax = 256ULL << 20;

/// Where a container lies, and what it holds. The catalog keeps one for each container.
struct ContainerRecord {
  std::uint32_t number = 0;
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  std::uint32_t head_bytes = 0;
  std::uint32_t data_bytes = 0;
  std::uint32_t chunks = 0;
  std::uint64_t raw_bytes = 0;

  [[nodiscard]] std::uint64_t end() const;
  [[nodiscard]] std::string encode() const;
  /// kCorrupt unless every length and offset is possible.
  [[nodiscard]] static Result<ContainerRecord> decode(std::uint32_t number, std::string_view bytes);
};

[[nodiscard]] std::string segment_name(std::uint32_t segment);

/// Reads containers. Thread-safe. Keeps a bounded number of files open.
class SegmentReader {
 public:
  /// `directory` holds the segments. `files` must outlive the reader.
  SegmentReader(io::FileSystem& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  /// Reads and verifies a container's head. kCorrupt if it is damaged or not the container
  /// that the record describes.
  [[nodiscard]] Result<format::ContainerHead> read_head(SeriesId series,
                                                        const ContainerRecord& record);
  /// Stored bytes from `offset` of the container's data; not verified.
  [[nodiscard]] Result<void> read_data(const ContainerRecord& record, std::uint32_t offset,
                                       std::span<std::byte> out);
  /// kCorrupt if the zeros that pad the container are missing or not zero.
  [[nodiscard]] Result<void> verify_padding(const ContainerRecord& record);
  /// Closes the files; those of the same names may be others from now on.
  void forget_files();
  /// The path of a container's file and its offset, for messages.
  [[nodiscard]] std::string describe(const ContainerRecord& record) const;

 private:
  [[nodiscard]] Result<std::shared_ptr<io::File>> file(std::uint32_t segment);

  static constexpr std::size_t kOpenFilesMax = 64;
  io::FileSystem& files_;
  const std::string directory_;
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, std::shared_ptr<io::File>> open_;
};

}  // namespace varve::store
