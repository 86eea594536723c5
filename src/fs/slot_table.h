// SPDX-License-Identifier: Apache-2.0
// The series and versions that a mount has met. A slot lives as long as the mount, so that
// a node id is translated without counting the kernel's references to it. Its index follows from
// the series and the version where these numbers fit into it: such node ids are the same in all
// mounts, which file handles need.
#pragma once

#include <sys/stat.h>

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
#include "varve/repository.h"
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
  [[nodiscard]] const SeriesInfo& series() const { return series_; }
  [[nodiscard]] VersionNumber number() const { return number_; }
  [[nodiscard]] bool is_series() const { return number_ == VersionNumber{}; }
  /// Tells file handles of this series from those of another repository with the same numbers.
  [[nodiscard]] std::uint32_t generation() const { return generation_; }

  /// What stands behind a version: one of the two is set. Both are null once it is gone.
  struct Tree {
    std::shared_ptr<VersionWriter> writer;
    std::shared_ptr<VersionReader> reader;
  };
  [[nodiscard]] Tree tree() const;

  void set_writer(std::shared_ptr<VersionWriter> writer);
  void set_reader(std::shared_ptr<VersionReader> reader);
  /// The open version became `reader`; inode numbers that the kernel still holds are
  /// translated by `outcome` from now on.
  void seal(const SealOutcome& outcome, std::shared_ptr<VersionReader> reader);
  void drop();
  /// The series, or the root directory of the version, was removed. A program may still stand in
  /// it: `last` is what stat(2) tells from then on.
  void remove(const struct stat& last);
  [[nodiscard]] std::optional<struct stat> removed() const;

  /// The rank that an inode of the open version became, if it was sealed in this mount.
  [[nodiscard]] std::optional<Rank> rank_of(Ino ino) const;

 private:
  const std::uint32_t index_;
  const SeriesInfo series_;
  const VersionNumber number_;
  const std::uint32_t generation_;
  mutable std::mutex mutex_;
  Tree tree_;
  std::optional<struct stat> removed_;
  RankTable rank_of_;
};

/// Thread-safe; slots never move.
class SlotTable {
 public:
  Slot& series(const SeriesInfo& series);
  Slot& version(const SeriesInfo& series, VersionNumber number);
  /// What has this index in every mount; nullopt for an index that was given out as it came.
  [[nodiscard]] static std::optional<std::pair<SeriesId, VersionNumber>> place_of(
      std::uint32_t index);
  /// Null if no such slot was given out.
  [[nodiscard]] Slot* find(std::uint32_t index);
  /// Null if the version was not met yet.
  [[nodiscard]] Slot* find(SeriesId series, VersionNumber number);
  /// Lets go of all versions, before the repository is closed.
  void drop_all();

 private:
  std::shared_mutex mutex_;
  std::deque<Slot> slots_;
  std::unordered_map<std::uint32_t, Slot*> by_index_;
  std::map<std::pair<SeriesId, VersionNumber>, Slot*> by_version_;
  std::uint32_t given_out_ = 0;  ///< Indices without a place.
};

}  // namespace varve::fs
