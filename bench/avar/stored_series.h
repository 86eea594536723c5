// SPDX-License-Identifier: Apache-2.0
// A series of generated versions in the real layout, with the measurements of the benchmarks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "avar/version_source.h"
#include "base/thread_pool.h"
#include "io/posix_file_system.h"
#include "layout/category_layout.h"
#include "layout/chunk_mover.h"
#include "meta/lmdb.h"
#include "must.h"
#include "store/folder_store.h"
#include "varve/arrange.h"

namespace varve::bench {

/// The costs of reading one version.
struct Reads {
  /// Amplification of reading every needed byte once, in any order, through gaps under 1 MiB.
  double amplification = 0;
  std::size_t extents = 0;   ///< Number of reads for that.
  double in_order = 0;       ///< Amplification of the restore engine with 64 MiB, headers included.
  std::size_t requests = 0;  ///< Requests of the engine for data.
  std::uint64_t read_bytes = 0;    ///< Bytes that the engine read, headers included.
  std::uint64_t unique_bytes = 0;  ///< Size of the version's different chunks.
  std::uint64_t logical_bytes = 0;
};

/// The use of the files' bytes. The parts add up to `files`.
struct Space {
  std::uint64_t files = 0;
  std::uint64_t live = 0;     ///< Raw bytes of the located chunks.
  std::uint64_t dead = 0;     ///< Bytes of chunks that are unused or were copied elsewhere.
  std::uint64_t headers = 0;  ///< Bytes of headers and padding of containers.
};

struct Deletion {
  double seconds = 0;
  std::uint64_t freed = 0;
  std::uint64_t moved = 0;  ///< Bytes added to container files.
};

/// A series stored without compression, so that its bytes compare with those of an exact index.
class StoredSeries {
 public:
  /// Creates the directory again. The destructor removes it. `files` keeps the containers.
  StoredSeries(std::string directory, const ArrangeSettings& settings,
               std::unique_ptr<io::FileSystem> files = io::make_posix_file_system());
  ~StoredSeries();
  StoredSeries(const StoredSeries&) = delete;
  StoredSeries& operator=(const StoredSeries&) = delete;

  void store(const std::vector<Content>& stream, const ContentSource& source);
  layout::MoveOutcome arrange();
  /// Deletes versions. They count from 0, in the order of storing.
  Deletion remove(const std::vector<std::size_t>& versions);
  /// Save a copy of the state on disk, and return to it. Streams do not change, so removed versions
  /// exist again.
  void keep();
  void go_back();

  /// Returns dead and departing bytes as a share of the active set's live bytes.
  double dead_share();
  [[nodiscard]] Space space();
  Reads reads_of(std::size_t version);
  /// Sets the memory of the restore engine for later measurements; 64 MiB at first.
  void read_with(std::size_t engine_bytes) { engine_bytes_ = engine_bytes; }
  /// As reads_of(), without the reads in any order.
  Reads reads_in_order_of(std::size_t version);
  /// Returns only Reads::amplification, which needs no reading.
  double amplification_of(std::size_t version) {
    Reads reads;
    read_scattered(version, reads);
    return reads.amplification;
  }

  [[nodiscard]] layout::ChunkSource& chunks() { return *layout_; }
  [[nodiscard]] const std::vector<ChunkId>& stream(std::size_t version) const {
    return streams_[version];
  }
  [[nodiscard]] std::uint32_t bytes_of(ChunkId id) const { return bytes_of_.at(id.value); }

  [[nodiscard]] std::uint64_t stored_bytes();
  [[nodiscard]] std::uint64_t backup_bytes() const { return backup_bytes_; }
  [[nodiscard]] std::uint64_t new_bytes() const { return new_bytes_; }

 private:
  void open();
  void close();
  void put(VersionNumber number, VersionState state);
  void read_scattered(std::size_t version, Reads& reads);
  void read_in_order(std::size_t version, Reads& reads);
  [[nodiscard]] std::unordered_map<std::string, std::uint64_t> file_sizes() const;

  const std::string directory_;
  std::unique_ptr<io::FileSystem> files_;
  base::ThreadPool pool_{1, "bench"};
  std::unique_ptr<const format::FrameCodec> codec_ = format::make_plain_frame_codec({});
  std::unique_ptr<meta::Env> catalog_;
  std::unique_ptr<store::FolderStore> store_;
  std::unique_ptr<layout::CategoryLayout> layout_;
  const ArrangeSettings settings_;
  std::vector<std::vector<ChunkId>> streams_;
  std::unordered_map<std::uint64_t, Content> content_of_;
  std::unordered_map<std::uint64_t, std::uint32_t> bytes_of_;
  std::size_t engine_bytes_ = 64U << 20;
  std::uint64_t backup_bytes_ = 0;
  std::uint64_t new_bytes_ = 0;
};

}  // namespace varve::bench
