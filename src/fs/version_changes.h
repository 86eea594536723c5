// SPDX-License-Identifier: Apache-2.0
// The steps by which versions are sealed and deleted while the kernel holds their files.
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

  /// Returns the mutex that prevents two seals in one series, or a seal and the opening of the next
  /// version, from running at once. Lock order: before any lock of a slot.
  [[nodiscard]] std::mutex& mutex_of(SeriesId series);

  /// Seals a version and switches its slot to the sealed tree. Caller holds mutex_of(series).
  [[nodiscard]] Result<SealOutcome> seal(SeriesId series, VersionNumber number,
                                         std::string_view new_name, SealMode mode = SealMode::kEnd,
                                         SealWriters writers = SealWriters::kRefuse);
  /// As seal(), but waits briefly for the kernel to report files that were just closed.
  [[nodiscard]] Result<SealOutcome> seal_after_last_close(SeriesId series, VersionNumber number,
                                                          std::string_view new_name);
  /// Seals the version that Repository::open_version() would seal. Returns its name, or "". Caller
  /// holds mutex_of(series).
  [[nodiscard]] Result<std::string> end_present_version(const SeriesInfo& series,
                                                        std::string_view new_name,
                                                        VersionNumber source);
  /// Deletes sealed versions, but waits briefly for the kernel to report files that were just
  /// closed.
  [[nodiscard]] Result<DeletionForecast> delete_after_last_close(
      SeriesId series, const std::vector<VersionNumber>& numbers, const DeletionOptions& options);

  /// Counts one more closed writer, for which a seal may wait.
  void note_closed_writer();
  /// Waits until a writer is closed, at most until `end`. Returns false if none was closed after
  /// closed_writers() had returned `seen`.
  [[nodiscard]] bool wait_for_close(std::uint64_t seen, std::chrono::steady_clock::time_point end);
  /// Returns the number of closed writers.
  [[nodiscard]] std::uint64_t closed_writers();

  /// Makes the kernel read the attributes of a series' `latest` again.
  void forget_latest(SeriesId series);
  /// Makes the kernel look up these names in a series again. Only for commands
  /// (KernelNotifier::forget_name).
  void forget_names(SeriesId series, const std::vector<std::string>& names);
  /// Makes the kernel look up these series again. Only for commands.
  void forget_series_names(const std::vector<std::string>& names);
  /// Drops the kernel's cache of open files in deleted versions. Only for commands.
  void forget_contents(SeriesId series, const std::vector<VersionNumber>& numbers);

 private:
  Repository& repository_;
  NodeTable& nodes_;
  const KernelNotifier& kernel_;

  std::mutex mutexes_mutex_;  // Taken last.
  std::map<SeriesId, std::mutex> mutexes_;

  // Guards the count of closed writers. Taken with no other lock held.
  std::mutex writers_mutex_;
  std::uint64_t writers_closed_ = 0;
  std::condition_variable writers_left_;
};

}  // namespace varve::fs
