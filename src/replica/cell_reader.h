// SPDX-License-Identifier: Apache-2.0
// Reads ranges of objects through the cache, each byte by one request.
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
#include "replica/block_cache.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::replica {

/// A range of an object.
struct ObjectRange {
  std::string object{};
  std::uint64_t object_bytes = 0;  ///< The length of the object.
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< The range ends in the object.
};

/// A range to read.
struct RangeToRead {
  ObjectRange range{};
  std::span<std::byte> out{};  ///< As long as the range. Must stay valid until its completion.
  /// If not null, and after will_read_once(), the reader may lend the bytes instead of filling
  /// `out`. Must stay valid as `out`.
  store::LentBytes* lent = nullptr;
};

struct CellReaderLimits {
  /// Bytes of one request; a range of more is read by several. A container of 4 MiB, which begins
  /// and ends in the middle of a cell, needs one request.
  std::uint64_t request_bytes_max = (std::uint64_t{4} << 20) + 2 * kCacheCellBytes;
  /// Bytes of a request in advance that waits, and that further ranges join which follow it: two
  /// such containers. One that does not wait stays smaller, so that its bytes come sooner.
  std::uint64_t joined_bytes_max = (std::uint64_t{8} << 20) + 2 * kCacheCellBytes;
  /// Bytes that are requested, or are received and neither in the cache nor read. Reads that a
  /// caller waits for may take as much again.
  std::uint64_t bytes_max = std::uint64_t{128} << 20;
  /// Bytes that a reader of all requests in advance or has not begun to use, for round trips of up
  /// to `near_trip`, and proportionally more for longer ones, within the limit above.
  std::uint64_t near_bytes_max = std::uint64_t{96} << 20;
  std::chrono::milliseconds near_trip{100};
  /// Bytes of the requests of which bytes are lent: a part of those that are requested or not read.
  /// More is copied.
  std::uint64_t lent_bytes_max = std::uint64_t{64} << 20;
  /// Bytes in memory that are in the cache, too.
  std::uint64_t held_bytes_max = std::uint64_t{32} << 20;
  /// Time for which bytes that were requested in advance stay in memory before they are read. Later
  /// they are read from the cache.
  std::chrono::milliseconds unread_kept{2000};
  std::size_t queue_max = 256;  ///< Requests in advance that wait; further ones are dropped.
  /// Time for which a failed read fails again at once. A reader that tries several ways to get its
  /// bytes then waits for the store only once.
  std::chrono::milliseconds failure_kept{5000};
  /// A store that answers nothing for so long is silent. Then all requests fail for failure_kept:
  /// a reader that tries other places waits once.
  std::chrono::milliseconds silence{30000};
};

/// Reads ranges of objects. Requests whole cells, and adds them to a cache on the local disk. Two
/// readers of one cell that is missing make one request. Threads of its own copy the bytes and
/// write the cache, so that neither delays the requests. A range of one request can be lent
/// instead. Thread-safe.
class CellReader {
 public:
  /// Receives the position of a range in its batch, and its error if it was not read.
  using Done = std::function<void(std::size_t position, const std::optional<Error>& error)>;

  /// Lifetime: `bucket` and `files` outlive the object; requests that are in flight at its end may
  /// end later.
  CellReader(bucket::Bucket& bucket, io::FileSystem& files, std::string cache_folder,
             std::uint64_t cache_bytes_max, CellReaderLimits limits = {});
  CellReader(const CellReader&) = delete;
  CellReader& operator=(const CellReader&) = delete;
  /// No read may be under way but those in advance.
  ~CellReader();

  /// Reads ranges, in any order, and calls `done` once for each, from this thread or others.
  /// Requests all that is missing at once. Errors: those of the bucket; kCorrupt if an object is
  /// missing, or shorter than its range says.
  void read(std::vector<RangeToRead> reads, Done done);
  /// Reads as read(), for a reader that chose these ranges at random. Requests more around them,
  /// the more of their neighbourhood was requested before.
  void read_at_random(std::vector<RangeToRead> reads, Done done);
  /// Requests a range in advance, if the limits allow that.
  void will_read(const ObjectRange& range);
  /// Announces that readers need most bytes once. From now on, the cache receives only the bytes
  /// that readers leave in what was requested, once its memory is needed.
  void will_read_once();
  /// Drops the cache and the bytes in memory, because some of them may be wrong: the store does not
  /// tell the checksum of a range. Later reads request what they need again.
  void drop_all();
  /// Makes the cache smaller, as BlockCache::shrink().
  std::uint64_t shrink_cache(std::uint64_t bytes);
  /// Drops a range, because some of it is wrong: the bytes may have been damaged on their way.
  void drop(const ObjectRange& range);
  /// Lets later reads that need a request fail at once, with kUnavailable. The bucket ends those
  /// under way.
  void end_reads();

 private:
  void read(std::vector<RangeToRead> reads, Done done, bool widens);

  struct Batch;
  struct Flight;
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace varve::replica
