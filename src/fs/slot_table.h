// SPDX-License-Identifier: Apache-2.0
// The series and versions known to the kernel in a mount. A slot lives as long as the mount, so a
// node id can be translated without counting the kernel's references. The index of a slot follows
// from the series and the version if both numbers fit. Node ids with a fitting index are the same
// in all mounts, as file handles require.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fs/node_id.h"
#include "fs/rank_set.h"
#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/mount.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::fs {

/// A series, or (number != 0) a version of a series. Thread-safe.
class Slot {
 public:
  Slot(std::uint32_t index, SeriesInfo series, VersionNumber number)
      : index_(index),
        series_(std::move(series)),
        number_(number),
        generation_(generation_of(series_)) {}

  [[nodiscard]] std::uint32_t index() const { return index_; }
  /// Returns the series as first found. The name may have changed: see series_name().
  [[nodiscard]] const SeriesInfo& series() const { return series_; }
  [[nodiscard]] std::string series_name() const;
  void rename_series(std::string name);
  [[nodiscard]] VersionNumber number() const { return number_; }
  [[nodiscard]] bool is_series() const { return number_ == VersionNumber{}; }
  /// Returns a number to distinguish file handles of the series from handles of another repository
  /// with the same numbers.
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

  /// Returns the generation of a directory of a sealed version. The generation grows by 1 each time
  /// the directory was removed and came back: after rmdir(2), the kernel never reads the directory
  /// again while a process uses the directory, and so needs another inode.
  [[nodiscard]] std::uint32_t generation_of_directory(Rank rank) const;
  /// Returns the number of calls of note_returned().
  [[nodiscard]] std::size_t times_returned() const;
  /// Records the removed entries that are visible again.
  void note_returned(RankSet entries);

  /// The tree of a version. Exactly one member is set, or no member after the deletion of the
  /// version.
  struct Tree {
    std::shared_ptr<VersionWriter> writer;
    std::shared_ptr<VersionReader> reader;
  };
  [[nodiscard]] Tree tree() const;

  /// Sets the tree of an open version. Has no effect if the version was sealed in the meantime.
  void set_writer(std::shared_ptr<VersionWriter> writer);
  /// Sets the tree of a sealed version.
  void set_reader(std::shared_ptr<VersionReader> reader);
  /// Replaces the open version by `reader`. `outcome` translates inode numbers still held by the
  /// kernel.
  void seal(const SealOutcome& outcome, std::shared_ptr<VersionReader> reader);
  /// Drops the tree, after the version was deleted.
  void drop();
  /// Marks the series, or the root directory of the version, as removed. A program may still use
  /// the directory as current directory: `last` holds the attributes for stat(2).
  void remove(const struct stat& last);
  /// Returns the attributes set by remove(); nullopt before remove().
  [[nodiscard]] std::optional<struct stat> removed() const;

  /// Returns the rank given by the seal to an inode of the open version, if the version was sealed
  /// in the mount.
  [[nodiscard]] std::optional<Rank> rank_of(Ino ino) const;

 private:
  const std::uint32_t index_;
  const SeriesInfo series_;
  const VersionNumber number_;
  const std::uint32_t generation_;
  mutable std::mutex mutex_;
  std::string series_name_ = series_.name;
  Tree tree_;
  std::optional<struct stat> removed_;
  std::shared_ptr<const RankTable> rank_of_;  ///< Null before the seal.
  std::atomic<bool> any_returned_ = false;
  std::vector<RankSet> returned_;
};

/// The slots of a mount. Slots never move. Thread-safe.
class SlotTable {
 public:
  /// Returns the slot of a series. Adds the slot if necessary.
  Slot& series(const SeriesInfo& series);
  /// Returns the slot of a version. A new slot has no tree.
  Slot& version(const SeriesInfo& series, VersionNumber number);
  /// Returns the series and version with the index in every mount; nullopt for an index from the
  /// counter.
  [[nodiscard]] static std::optional<std::pair<SeriesId, VersionNumber>> place_of(
      std::uint32_t index);
  /// Returns the slot with the index, or null.
  [[nodiscard]] Slot* find(std::uint32_t index);
  /// Returns the slot of a version, or of a series for number 0; null if unknown in the mount.
  [[nodiscard]] Slot* find(SeriesId series, VersionNumber number);
  /// Sets the name of a series in all slots of the series.
  void rename_series(SeriesId series, const std::string& name);
  /// Drops the trees of all versions. Must be called before the repository is closed.
  void drop_all();

 private:
  std::shared_mutex mutex_;
  std::deque<Slot> slots_;
  std::unordered_map<std::uint32_t, Slot*> by_index_;
  std::map<std::pair<SeriesId, VersionNumber>, Slot*> by_version_;
  std::uint32_t given_out_ = 0;  ///< Number of indices from the counter.
};

}  // namespace varve::fs
