// SPDX-License-Identifier: Apache-2.0
// Attributes and directory entries as the mount shows them.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include "fs/file_stat.h"
#include "fs/node_table.h"
#include "fs/slot_table.h"
#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::fs {

/// Computes the attributes, entries and cache times of nodes. Thread-safe.
class NodeAttributes {
 public:
  /// `show` selects how files appear. Lifetime: `repository` must outlive the object.
  NodeAttributes(Repository& repository, const ShowOptions& show);

  [[nodiscard]] const ShowOptions& show() const { return show_; }

  /// Returns the attributes of a node.
  /// Errors: kStale for a removed file; kNotFound for `latest` of a series without sealed versions.
  [[nodiscard]] Result<struct stat> of(const Node& node) const;
  /// Returns the attributes of a file of an open version, a file of a sealed one, or a series.
  [[nodiscard]] struct stat of(const Slot& slot, const OpenEntry& entry) const;
  [[nodiscard]] struct stat of(const Slot& slot, const SealedEntry& entry) const;
  [[nodiscard]] struct stat of(const SeriesInfo& series) const;

  /// Returns the directory entry of a file: its node id, attributes and cache times.
  [[nodiscard]] fuse_entry_param entry(const Slot& slot, const OpenEntry& entry) const;
  [[nodiscard]] fuse_entry_param entry(const Slot& slot, const SealedEntry& entry) const;

  /// Returns how long the kernel may cache the attributes of this node.
  [[nodiscard]] double timeout_s(const Node& node) const;
  /// Returns how long the kernel may cache the attributes of `latest`.
  [[nodiscard]] double latest_timeout_s() const;
  /// Returns whether the kernel learns of each change of `latest`, and so may keep its target: in a
  /// mount for writing, and after keep_latest().
  [[nodiscard]] bool keeps_latest() const;
  /// Notes that the kernel learns of each change. Must be called before the first request.
  void keep_latest() { is_told_ = true; }

 private:
  Repository& repository_;
  const ShowOptions show_;
  const Timestamp mounted_at_;
  bool is_told_ = false;
};

}  // namespace varve::fs
