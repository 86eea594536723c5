// SPDX-License-Identifier: Apache-2.0
// The series and versions that a mount has met. A slot lives as long as the mount, so that
// a node id is translated without counting the kernel's references to it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
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
      : index_(index), series_(std::move(series)), number_(number) {}

  [[nodiscard]] std::uint32_t index() const { return index_; }
  [[nodiscard]] const SeriesInfo& series() const { return series_; }
  [[nodiscard]] VersionNumber number() const { return number_; }
  [[nodiscard]] bool is_series() const { return number_ == VersionNumber{}; }

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

  /// The rank that an inode of the open version became, if it was sealed in this mount.
  [[nodiscard]] std::optional<Rank> rank_of(Ino ino) const;
  /// True if the kernel knows the version's root as an open version's inode; it stays so.
  [[nodiscard]] bool root_is_open_node() const;

 private:
  const std::uint32_t index_;
  const SeriesInfo series_;
  const VersionNumber number_;
  mutable std::mutex mutex_;
  Tree tree_;
  bool was_open_ = false;
  RankTable rank_of_;
};

/// Thread-safe; slots never move.
class SlotTable {
 public:
  Slot& series(const SeriesInfo& series);
  Slot& version(const SeriesInfo& series, VersionNumber number);
  /// Null if no such slot was given out.
  [[nodiscard]] Slot* find(std::uint32_t index);
  /// Null if the version was not met yet.
  [[nodiscard]] Slot* find(SeriesId series, VersionNumber number);
  /// Lets go of all versions, before the repository is closed.
  void drop_all();

 private:
  std::shared_mutex mutex_;
  std::deque<Slot> slots_;
  std::map<std::pair<SeriesId, VersionNumber>, Slot*> by_version_;
};

}  // namespace varve::fs
