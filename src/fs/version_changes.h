// SPDX-License-Identifier: Apache-2.0
// The steps of sealing and deleting versions while the kernel holds files of the versions.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fs/kernel_notifier.h"
#include "fs/node_table.h"
#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/retention.h"
#include "varve/types.h"

namespace varve::fs {

/// Changes the versions of a repository, keeps the node table up to date and notifies the kernel.
/// Shared by the requests of the kernel and by commands. Thread-safe.
class VersionChanges {
 public:
  /// Lifetime: the arguments must outlive the object.
  VersionChanges(Repository& repository, NodeTable& nodes, const KernelNotifier& kernel)
      : repository_(repository), nodes_(nodes), kernel_(kernel) {}

  /// Returns the mutex against two concurrent seals in a series, and against a seal during the
  /// opening of the next version. Lock order: before any lock of a slot.
  [[nodiscard]] std::mutex& mutex_of(SeriesId series);

  /// Seals a version and switches the version's slot to the sealed tree. Caller holds
  /// mutex_of(series).
  [[nodiscard]] Result<SealOutcome> seal(SeriesId series, VersionNumber number,
                                         std::string_view new_name, SealMode mode = SealMode::kEnd,
                                         SealWriters writers = SealWriters::kRefuse);
  /// As seal(), but waits briefly for the kernel to report recently closed files.
  [[nodiscard]] Result<SealOutcome> seal_after_last_close(SeriesId series, VersionNumber number,
                                                          std::string_view new_name);
  /// Seals the version to be sealed by Repository::open_version(). Returns the version's name, or
  /// "" if there is no version to seal. Caller holds mutex_of(series).
  [[nodiscard]] Result<std::string> end_present_version(const SeriesInfo& series,
                                                        std::string_view new_name,
                                                        VersionNumber source);
  /// Deletes sealed versions, but waits briefly for the kernel to report recently closed files.
  [[nodiscard]] Result<DeletionForecast> delete_after_last_close(
      SeriesId series, const std::vector<VersionNumber>& numbers, const DeletionOptions& options);

  /// Counts a closed writer. A seal may be waiting for the close.
  void note_closed_writer();
  /// Waits until a writer is closed, at most until `end`. Returns false if none was closed after
  /// closed_writers() had returned `seen`.
  [[nodiscard]] bool wait_for_close(std::uint64_t seen, std::chrono::steady_clock::time_point end);
  /// Returns the number of closed writers.
  [[nodiscard]] std::uint64_t closed_writers();

  /// Makes the kernel read the attributes of a series' `latest` again.
  void forget_latest(SeriesId series);
  /// Makes the kernel look up the names in a series again. Only for commands
  /// (KernelNotifier::forget_name).
  void forget_names(SeriesId series, const std::vector<std::string>& names);
  /// Makes the kernel look up the series again. Only for commands.
  void forget_series_names(const std::vector<std::string>& names);
  /// Drops the kernel's cache of open files in deleted versions. Only for commands.
  void forget_contents(SeriesId series, const std::vector<VersionNumber>& numbers);

 private:
  Repository& repository_;
  NodeTable& nodes_;
  const KernelNotifier& kernel_;

  std::mutex mutexes_mutex_;  // Taken last.
  std::map<SeriesId, std::mutex> mutexes_;

  // Guards the count of closed writers. No lock is held when the mutex is taken.
  std::mutex writers_mutex_;
  std::uint64_t writers_closed_ = 0;
  std::condition_variable writers_left_;
};

}  // namespace varve::fs
