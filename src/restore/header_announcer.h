// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>

#include "base/ids.h"
#include "base/thread_pool.h"
#include "restore/read_service.h"

namespace varve::restore {

/// Reads the headers of a large file's containers in advance of random reads. Otherwise the first
/// random read of a container waits for the disk twice: for the header, to locate the data, and for
/// the data. An image of 1 GiB has 300 containers. The number of headers per random read is
/// limited, so that an occasional reader costs little. Does nothing for a distant store:
/// ChunkSource::will_read_chunks() requests a header and data there at once. Thread-safe.
class HeaderAnnouncer : public std::enable_shared_from_this<HeaderAnnouncer> {
 public:
  /// Number of random reads after which announcing begins.
  static constexpr std::uint32_t kReadsMin = 4;
  static constexpr std::uint32_t kHeadersPerRead = 32;
  /// Limit on containers: in a larger file, few reads meet the same header again.
  static constexpr std::uint32_t kHeadersMax = 8192;

  explicit HeaderAnnouncer(ReadableFile file) : file_(std::move(file)) {}

  /// Counts one more random read of the file, and announces the headers that are due on `workers`.
  void on_read(base::ThreadPool& workers);

 private:
  void announce();
  [[nodiscard]] bool announce_next();

  const ReadableFile file_;  // Also protects the file's version from deletion.
  std::atomic<std::uint32_t> reads_ = 0;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> ended_ = false;

  // Used only by the one busy worker.
  std::size_t run_ = 0;
  std::uint32_t chunk_ = 0;                        // Next chunk of the run.
  std::unordered_set<ContainerNumber> announced_;  // Numbers of the announced containers.
};

}  // namespace varve::restore
