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

/// Tells the read service the measured cost of a request on the repository's disk. A process that
/// may write measures the cost once the repository has enough data: when a version is read for the
/// first time, or when the repository is closed. A read-only process uses the defaults until a
/// writer has measured the disk, because measuring would slow down the process's reads.
/// Thread-safe. Lifetime: the objects in `parts` must outlive the DiskCosts.
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

  /// Prepares for a read. The first call looks the costs up, or starts to measure them in the
  /// background. Never waits for the measurement.
  void on_reader();
  /// Measures unknown costs, in less than half a second. Call when the repository has no more work.
  void on_close();
  /// Stops a running measurement. Waits for its end: about one read of the disk.
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
