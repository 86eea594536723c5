// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "format/birth_mark.h"

namespace varve::store {

class NumberSource;

struct ContainerWriterOptions {
  StoreId store{};
  NumberSource* numbers = nullptr;  ///< Outlives the writer.
  /// True to write volumes: compact containers, through the page cache.
  bool volume = false;
  /// Maximum length, in bytes, of a file with more than one container; 0 = by
  /// SegmentStore::segment_bytes().
  /// A file has at least one container, and no container is longer unless the container has a
  /// single frame.
  std::uint64_t segment_bytes_max = 0;
  /// True for a separate file per container, so that any container can be freed.
  bool file_per_container = false;
  /// Raw bytes in memory above which append() waits for the disk; at least 4 MiB without
  /// compression.
  std::size_t waiting_bytes_max = 32U << 20;
  /// True if a SpaceGuard admitted the appended data: the writer then uses the reserve, too.
  bool admitted = false;
  /// The existing marks of the births of all chunks.
  format::BirthMarks marks{};
  /// True to keep raw bytes until written, for read_unwritten(). Otherwise raw bytes wait only
  /// until packed into the container being built, which then holds the only copy.
  bool readable = true;

  /// Returns the raw bytes after which even a partly filled container is written. The limit bounds
  /// the waiting raw frames of very compressible data in memory.
  [[nodiscard]] std::size_t container_raw_bytes_max() const;
  /// Returns the maximum length of a container: a file has room for at least one container.
  [[nodiscard]] std::uint64_t container_bytes_max() const;
};

}  // namespace varve::store
