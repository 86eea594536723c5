// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_set>

#include "base/thread_pool.h"
#include "restore/read_service.h"

namespace varve::restore {

/// Has the headers of a large file's containers read before random reads come to them. A random
/// read of a container that was not met before waits for the disk twice, first for the header,
/// which says where in the container the data is; and an image of 1 GiB has 300 of them. So many
/// headers follow each random read that a file which is read now and then costs little.
/// Thread-safe.
class HeaderAnnouncer : public std::enable_shared_from_this<HeaderAnnouncer> {
 public:
  /// From so many random reads on.
  static constexpr std::uint32_t kReadsMin = 4;
  static constexpr std::uint32_t kHeadersPerRead = 32;
  /// A file of more containers has too many headers for a few reads to meet one again.
  static constexpr std::uint32_t kHeadersMax = 8192;

  explicit HeaderAnnouncer(ReadableFile file) : file_(std::move(file)) {}

  /// The file was read at random once more. What is due is done in `workers`.
  void on_read(base::ThreadPool& workers);

 private:
  void announce();
  [[nodiscard]] bool announce_next();

  const ReadableFile file_;  // With what keeps its version.
  std::atomic<std::uint32_t> reads_ = 0;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> ended_ = false;

  // For the one worker that is busy.
  std::size_t run_ = 0;
  std::uint32_t chunk_ = 0;                      // Of the run.
  std::unordered_set<std::uint32_t> announced_;  // Containers.
};

}  // namespace varve::restore
