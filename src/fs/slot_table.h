// SPDX-License-Identifier: Apache-2.0
// The series and versions that the kernel has seen in this mount. A slot lives as long as the
// mount, so a node id can be translated without counting the kernel's references. The index of a
// slot follows from the series and the version if their numbers fit. Such node ids are the same in
// all mounts, as file handles require.
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

/// A series, or (number != 0) one version of it. Thread-safe.
class Slot {
 public:
  Slot(std::uint32_t index, SeriesInfo series, VersionNumber number)
      : index_(index),
        series_(std::move(series)),
        number_(number),
        generation_(generation_of(series_)) {}

  [[nodiscard]] std::uint32_t index() const { return index_; }
  /// Returns the series as it was found first. Its name may have changed: see series_name().
  [[nodiscard]] const SeriesInfo& series() const { return series_; }
  [[nodiscard]] std::string series_name() const;
  void rename_series(std::string name);
  [[nodiscard]] VersionNumber number() const { return number_; }
  [[nodiscard]] bool is_series() const { return number_ == VersionNumber{}; }
  /// Returns a number that distinguishes file handles of this series from those of another
  /// repository with the same numbers.
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

  /// Returns the generation of a directory of a sealed version. It grows by one each time the
  /// directory was removed and came back: the kernel never again reads a directory that rmdir(2)
  /// has removed, as long as a process uses it, and needs another inode.
  [[nodiscard]] std::uint32_t generation_of_directory(Rank rank) const;
  /// Returns the number of calls of note_returned().
  [[nodiscard]] std::size_t times_returned() const;
  /// Notes that removed entries are visible again.
  void note_returned(RankSet entries);

  /// The tree of a version. Exactly one member is set, or none after the version is deleted.
  struct Tree {
    std::shared_ptr<VersionWriter> writer;
    std::shared_ptr<VersionReader> reader;
  };
  [[nodiscard]] Tree tree() const;

  /// Sets the tree of an open version. Has no effect if the version was sealed in the meantime.
  void set_writer(std::shared_ptr<VersionWriter> writer);
  /// Sets the tree of a sealed version.
  void set_reader(std::shared_ptr<VersionReader> reader);
  /// Replaces the open version by `reader`. `outcome` translates inode numbers that the kernel
  /// still holds.
  void seal(const SealOutcome& outcome, std::shared_ptr<VersionReader> reader);
  /// Drops the tree, after the version was deleted.
  void drop();
  /// Marks the series, or the root directory of the version, as removed. A program may still have
  /// it as its current directory: `last` holds the attributes for stat(2).
  void remove(const struct stat& last);
  /// Returns the attributes that remove() has set; nullopt if it was not called.
  [[nodiscard]] std::optional<struct stat> removed() const;

  /// Returns the rank that an inode of the open version got, if it was sealed in this mount.
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
  /// Returns the slot of a series. Adds it if necessary.
  Slot& series(const SeriesInfo& series);
  /// Returns the slot of a version, without a tree if it is new.
  Slot& version(const SeriesInfo& series, VersionNumber number);
  /// Returns the series and version that have this index in every mount; nullopt for an index from
  /// the counter.
  [[nodiscard]] static std::optional<std::pair<SeriesId, VersionNumber>> place_of(
      std::uint32_t index);
  /// Returns the slot with this index, or null.
  [[nodiscard]] Slot* find(std::uint32_t index);
  /// Returns the slot of a version, or of a series for number 0. Returns null if this mount has not
  /// seen it.
  [[nodiscard]] Slot* find(SeriesId series, VersionNumber number);
  /// Sets the name of a series in all its slots.
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
