// SPDX-License-Identifier: Apache-2.0
// Reads ranges of objects through the cache, and requests each byte once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "bucket/bucket.h"
#include "io/file_system.h"
#include "remote/block_cache.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::remote {

/// A range of an object.
struct ObjectRange {
  std::string object{};
  std::uint64_t object_bytes = 0;  ///< The length of the object.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< The range ends within the object.
};

/// A range to read.
struct RangeToRead {
  ObjectRange range{};
  std::span<std::byte> out{};  ///< As long as the range. Must stay valid until completion.
  /// If not null, and after will_read_once(), the reader may lend the bytes instead of filling
  /// `out`. Must stay valid until completion.
  store::LentBytes* lent = nullptr;
};

struct CellReaderLimits {
  /// Bytes of one request; a longer range takes several requests. A container of 4 MiB, which
  /// begins and ends in the middle of a cell, needs one request.
  std::uint64_t request_bytes_max = (std::uint64_t{4} << 20) + 2 * kCacheCellBytes;
  /// Bytes of a waiting prefetch request, which following ranges may join: two containers of 4 MiB.
  /// A prefetch request that does not wait stays smaller, so its bytes arrive sooner.
  std::uint64_t joined_bytes_max = (std::uint64_t{8} << 20) + 2 * kCacheCellBytes;
  /// Bytes requested, or received and neither in the cache nor read. Reads on demand may take the
  /// same number of bytes again.
  std::uint64_t bytes_max = std::uint64_t{128} << 20;
  /// After will_read_once(): bytes prefetched, or received and mostly unread, for round trips of up
  /// to `near_trip`. The limit grows in proportion to longer round trips, but stays within
  /// `bytes_max`.
  std::uint64_t near_bytes_max = std::uint64_t{96} << 20;
  std::chrono::milliseconds near_trip{100};
  /// Bytes of the requests whose memory is lent, a part of the unread bytes. Beyond the limit,
  /// bytes are copied.
  std::uint64_t lent_bytes_max = std::uint64_t{64} << 20;
  /// Bytes held in memory in addition to the cache.
  std::uint64_t held_bytes_max = std::uint64_t{32} << 20;
  /// Time for which prefetched, unread bytes stay in memory. Later reads take the bytes from the
  /// cache.
  std::chrono::milliseconds unread_kept{2000};
  std::size_t queue_max = 256;  ///< Waiting prefetch requests; more are dropped.
  /// Time after a failed read for which the same read fails at once. A caller trying several ways
  /// to get the bytes then waits for the store only once.
  std::chrono::milliseconds failure_kept{5000};
  /// A store without any answer for this time is silent. All requests then fail for failure_kept,
  /// so a caller trying several places waits once.
  std::chrono::milliseconds silence{30000};
};

/// Reads ranges of objects. Requests whole cells, and adds the cells to a cache on the local disk.
/// Concurrent reads of a missing cell share one request. Internal threads copy the bytes and write
/// the cache, so neither delays the requests. The bytes of one request can be lent instead.
/// Thread-safe.
class CellReader {
 public:
  /// Receives the position of a range in its batch, and the error if the read failed.
  using Done = std::function<void(std::size_t position, const std::optional<Error>& error)>;

  /// Lifetime: `bucket` and `files` outlive the object. Requests in flight at destruction may end
  /// later.
  CellReader(bucket::Bucket& bucket, io::FileSystem& files, std::string cache_folder,
             std::uint64_t cache_bytes_max, CellReaderLimits limits = {});
  CellReader(const CellReader&) = delete;
  CellReader& operator=(const CellReader&) = delete;
  /// Only prefetches may be in progress.
  ~CellReader();

  /// Reads ranges in any order, and calls `done` once per range, from this thread or another
  /// thread. Requests all missing cells at once. Errors: errors of the bucket; kCorrupt if an
  /// object is missing or shorter than its range.
  void read(std::vector<RangeToRead> reads, Done done);
  /// Reads ranges chosen at random, as read() does. Also requests neighbouring cells: the more
  /// cells of the neighbourhood were requested before, the more cells.
  void read_at_random(std::vector<RangeToRead> reads, Done done);
  /// Prefetches a range, if the limits allow another request.
  void will_read(const ObjectRange& range);
  /// Announces that readers need most bytes once. From now on, the cache receives only bytes left
  /// unread, and receives the bytes once their memory is needed.
  void will_read_once();
  /// Drops the cache and the bytes in memory, because some bytes may be wrong: the store returns no
  /// checksum for a range. Later reads request their bytes again.
  void drop_all();
  /// Shrinks the cache, as BlockCache::shrink() does.
  std::uint64_t shrink_cache(std::uint64_t bytes);
  /// Drops a range with some wrong bytes: the transfer may have damaged the bytes.
  void drop(const ObjectRange& range);
  /// Makes later reads fail at once with kUnavailable if a request is needed. The bucket ends
  /// requests in flight.
  void end_reads();

 private:
  void read(std::vector<RangeToRead> reads, Done done, bool widens);

  struct Batch;
  struct Flight;
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace varve::remote
