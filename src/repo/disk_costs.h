// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "io/disk_probe.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "restore/read_service.h"

namespace varve::repo {

/// Tells the read service what a request costs on the repository's disk, as it was measured before.
/// It is measured by whoever may keep the result, once there is enough to measure with: when a
/// version is read for the first time, or when the repository is closed. A process that only reads
/// does with the defaults until then: measuring would take the disk from the reading that it is
/// for. Thread-safe. All that it is given outlives it.
class DiskCosts {
 public:
  struct Parts {
    std::string series_directory;  ///< REPO/series.
    io::FileSystem* files = nullptr;
    meta::Env* catalog = nullptr;
    const base::Clock* clock = nullptr;
    restore::ReadService* service = nullptr;
    bool read_only = false;  ///< Nothing can be kept, so nothing is measured.
  };
  explicit DiskCosts(Parts parts) : parts_(std::move(parts)) {}
  DiskCosts(const DiskCosts&) = delete;
  DiskCosts& operator=(const DiskCosts&) = delete;
  ~DiskCosts() { stop(); }

  /// Somebody is about to read. The first call looks the costs up, or has them measured in the
  /// background; it never waits for that.
  void on_reader();
  /// The repository has no more to do. Measures now, in less than half a second, what is neither
  /// known nor being measured.
  void on_close();
  /// Gives up a measurement under way; about one read of the disk later it has ended.
  void stop();

 private:
  [[nodiscard]] bool use_record();
  void measure(const std::stop_token& stop);
  [[nodiscard]] std::vector<io::ProbedFile> files_to_probe(const std::stop_token& stop) const;
  [[nodiscard]] std::uint64_t disk_bytes() const;
  void use(const io::DiskSpeed& speed) const;

  const Parts parts_;
  std::mutex mutex_;  // Outermost; not held while measuring.
  bool is_done_ = false;
  std::jthread thread_;
};

}  // namespace varve::repo
