// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>

#include "repo/evicted_arranging.h"
#include "repo/repository_folder.h"
#include "repo/series_table.h"
#include "repo/settings_editor.h"
#include "series/eviction_rules.h"
#include "series/series_host.h"
#include "varve/arrange.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::repo {

/// The series of an open repository that wait for arranging, and the thread that arranges series
/// after seals and deletions. Seals wait here while arranging is far behind, so that the backlog of
/// arranging stays bounded under continuous backups. Thread-safe. Lock order: mutex_ is innermost;
/// no series is called with mutex_ held.
class ArrangeQueue {
 public:
  /// Lifetime: the arguments outlive the object.
  ArrangeQueue(RepositoryFolder& folder, SeriesTable& series, const SettingsEditor& settings)
      : folder_(folder), series_(series), settings_(settings) {}

  /// Call in a repository open for writing, before other functions.
  void start();
  /// Adds the series that a note names as unarranged; nullopt for any series.
  void add_unarranged(const std::optional<std::set<SeriesId>>& unarranged);
  /// Requests arranging of all series that may have work left, because an earlier process may have
  /// stopped or skipped the work. Also requests a replication, if any series may have work.
  void resume();
  /// Notes that any series may have work: after a change of the settings.
  void expect_any();
  /// Returns the series that may have work left; nullopt if any series may.
  [[nodiscard]] std::optional<std::set<SeriesId>> unarranged();
  /// Ends the thread.
  void stop();

  /// Requests arranging in the background, after a seal or a deletion.
  void arrange_soon(SeriesId series);
  /// Arranges a series, as Repository::arrange().
  [[nodiscard]] Result<ArrangeReport> arrange(SeriesId series, const ArrangeOptions& options);
  /// Returns how urgent the background arranging of a series is.
  [[nodiscard]] series::ArrangeUrgency urgency(SeriesId series);
  /// Waits a bounded time if arranging of the series is far behind. The caller holds no lock.
  void before_seal(SeriesId series);
  /// Returns how arranging treats evicted files; null where all data is on the disk.
  [[nodiscard]] series::EvictionRules* eviction() { return evicted_.get(); }

 private:
  /// The requested and unfinished arranging of a series.
  struct Backlog {
    std::uint64_t requests = 0;    // Requests for arranging: by seals, deletions and openings.
    std::uint64_t covered = 0;     // Requests before the start of the last finished arranging.
    std::uint64_t waited_for = 0;  // Requests before the last waiting seal.
    std::uint32_t waiting = 0;     // Seals waiting now.
    bool failed = false;           // The last arranging failed: no seal waits.
  };
  enum class End : std::uint8_t { kFinished, kStopped, kFailed };

  void arrange_in_background(ArrangeOptions options);
  /// Returns the limit of background arranging in bytes per second; 0 for none.
  [[nodiscard]] std::uint64_t background_rate() const;
  /// Takes the next series to arrange. Waits for a series; nullopt if stopped.
  [[nodiscard]] std::optional<SeriesId> next(const std::stop_token& stop);
  /// Arranges a series; `told` says whether a full disk was logged already.
  [[nodiscard]] Result<bool> arrange_next(SeriesId series, const ArrangeOptions& options,
                                          bool& told);
  /// Returns whether a series has more work left for arranging than a seal may add to.
  [[nodiscard]] bool is_far_behind(SeriesId series);
  /// Notes that arranging begins. Returns the number of covered requests.
  [[nodiscard]] std::uint64_t begin(SeriesId series);
  void end(SeriesId series, std::uint64_t covered, End end);
  /// Returns whether a series has work waiting for more versions.
  [[nodiscard]] bool has_waiting_work(SeriesId series) {
    return evicted_ && evicted_->waits(series);
  }

  RepositoryFolder& folder_;
  SeriesTable& series_;
  const SettingsEditor& settings_;
  std::unique_ptr<EvictedArranging> evicted_;  // Null where all data is on the disk.
  std::mutex mutex_;                           // Guards the members below.
  std::condition_variable_any wake_;
  std::set<SeriesId> to_arrange_;
  std::set<SeriesId> unarranged_;  // Series with possible work.
  bool any_unarranged_ = true;     // Any series may have work left.
  std::map<SeriesId, Backlog> backlogs_;
  std::uint32_t seals_waiting_ = 0;  // Sum of Backlog::waiting.
  bool stops_ = false;
  std::condition_variable ended_;
  std::jthread thread_;
};

}  // namespace varve::repo
