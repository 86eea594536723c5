// SPDX-License-Identifier: Apache-2.0
// The segments and volumes of a repository in an object store, read by ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bucket/bucket.h"
#include "remote/cell_reader.h"
#include "remote/changes.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::remote {

/// The extents of one file. After a later head drops the file, the extents stay valid for a day.
using Extents = std::shared_ptr<const std::vector<Extent>>;

/// One range of a batch of reads.
struct DistantRead {
  Extents file;
  std::uint64_t offset = 0;
  std::span<std::byte> out{};        ///< Must stay valid until the range's completion.
  store::LentBytes* lent = nullptr;  ///< As RangeToRead::lent.
};
}  // namespace varve::remote

namespace varve::store {

struct DistantBatch {
  std::vector<remote::DistantRead> reads;
};

}  // namespace varve::store

namespace varve::remote {

using DistantCompletion = std::function<void(std::size_t position, Result<std::size_t> got)>;

/// Reads files by the map of objects, through a cache on the local disk. Thread-safe.
class DistantData {
 public:
  /// Returns the current map of objects. Called again when a file is missing.
  using LoadMap = std::function<Result<ObjectMap>()>;

  /// Lifetime: `bucket` and `files` outlive the object.
  DistantData(bucket::Bucket& bucket, io::FileSystem& files, std::string cache_folder,
              std::uint64_t cache_bytes_max, LoadMap load)
      : cells_(bucket, files, std::move(cache_folder), cache_bytes_max), load_(std::move(load)) {}

  /// Returns a file of the map by its path in the repository. Errors: kNotFound; errors of the map.
  [[nodiscard]] Result<Extents> find(const std::string& path);
  /// Returns the current extents of a file, without loading the map; null without extents.
  [[nodiscard]] Extents known(const std::string& path);
  /// Loads the map again.
  [[nodiscard]] Result<void> reload();
  /// Returns the names of the files in a folder.
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& folder);

  /// Fills `out`, and may request more around the range, as CellReader::read_at_random() does.
  /// Returns fewer bytes only where the file ends. Errors: errors of the bucket.
  [[nodiscard]] Result<std::size_t> read(const Extents& file, std::uint64_t offset,
                                         std::span<std::byte> out);
  /// Reads ranges in any order, and calls `done` once per range, from this thread or another
  /// thread. Requests all missing blocks at once.
  void read_many(std::vector<DistantRead> reads, const DistantCompletion& done);
  /// Prefetches a range, if the limits of CellReader allow another request.
  void will_read(const Extents& file, std::uint64_t offset, std::uint64_t bytes);
  /// Shrinks the cache, as BlockCache::shrink() does.
  std::uint64_t shrink_cache(std::uint64_t bytes) { return cells_.shrink_cache(bytes); }
  /// Drops a range, as CellReader::drop().
  void drop(const Extents& file, std::uint64_t offset, std::uint64_t bytes);
  /// Drops all data read from the store, as CellReader::drop_all() does.
  void drop_cached() { cells_.drop_all(); }
  /// From now on caches only bytes left unread, as CellReader::will_read_once() says.
  void will_read_once() { cells_.will_read_once(); }
  /// Makes later reads that need a request fail, as CellReader::end_reads() does.
  void end_reads() { cells_.end_reads(); }

 private:
  [[nodiscard]] Result<void> load(bool again);
  void read_many(std::vector<DistantRead> reads, const DistantCompletion& done, bool is_random);

  CellReader cells_;
  const LoadMap load_;

  std::mutex mutex_;  // Guards the members below.
  bool loaded_ = false;
  std::map<std::string, Extents> map_;
};

}  // namespace varve::remote
