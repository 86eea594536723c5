// SPDX-License-Identifier: Apache-2.0
// The numbers of an open version that its overlay keeps beside the tree.
#pragma once

#include <cstdint>
#include <optional>

#include "meta/lmdb.h"
#include "varve/backup.h"
#include "varve/result.h"
#include "varve/rewrite.h"
#include "varve/types.h"

namespace varve::version {

/// Returns the number of the next inode of an open version, as recorded in the overlay. `base_end`:
/// as for decode_open_inode(). Errors: kCorrupt if an inode could have the number already.
[[nodiscard]] Result<Ino> read_inode_counter(const meta::Txn& overlay, Ino base_end);

/// Returns the number of names recorded by the last checkpoint; nullopt if unknown.
[[nodiscard]] std::optional<std::uint64_t> recorded_entries(const meta::Env& overlay);

/// The numbers recorded by one checkpoint.
struct OverlayNumbers {
  Ino next_ino = 0;           ///< Number of the next inode.
  std::uint64_t entries = 0;  ///< Number of names.
  Timestamp changed_at;       ///< Time when a checkpoint last took changes.
  RewriteCounts rewrite_counts;
};

/// Appends the numbers to a checkpoint's transaction, with the format of the overlay.
[[nodiscard]] Result<void> put_numbers(meta::WriteTxn& overlay, const OverlayNumbers& numbers);

/// Counts the inodes and names of an open version. Not thread-safe: OpenState::mutex guards the
/// counters.
///
/// Invariant: no inode of the version has a number of at least next() - so each number is given
/// once, also across restarts.
class OverlayCounters {
 public:
  /// `base_end`: end of the base's inode numbers; nullopt without a base.
  explicit OverlayCounters(std::optional<Ino> base_end);

  /// Reads the numbers of the last checkpoint. Without a record of the names, counts them.
  /// Errors: kUnsupported for an overlay of another format; kCorrupt if the counter of inodes could
  /// give a number a second time.
  [[nodiscard]] Result<void> load(const meta::Txn& overlay);

  /// Returns a number for a new inode.
  [[nodiscard]] Ino take_ino() { return numbers_.next_ino++; }
  /// Returns the number that the next new inode gets.
  [[nodiscard]] Ino next() const { return numbers_.next_ino; }
  /// Returns the number of inodes made in the version, including removed inodes.
  [[nodiscard]] std::uint64_t made() const { return numbers_.next_ino - first_; }
  /// Adds `more` to the number of names. `more` is negative for removed names.
  void add_entries(std::int64_t more) { numbers_.entries += static_cast<std::uint64_t>(more); }
  [[nodiscard]] std::uint64_t entries() const { return numbers_.entries; }
  void set_changed_at(Timestamp time) { numbers_.changed_at = time; }
  /// Returns the time when the last checkpoint with changes took the changes.
  [[nodiscard]] Timestamp changed_at() const { return numbers_.changed_at; }
  /// Returns the rewrite counts found by load().
  [[nodiscard]] const RewriteCounts& rewrite_counts() const { return numbers_.rewrite_counts; }
  /// Returns the present numbers, for a checkpoint.
  [[nodiscard]] const OverlayNumbers& numbers() const { return numbers_; }

 private:
  const bool has_base_;
  const Ino first_;  // Number of the version's first own inode.
  OverlayNumbers numbers_;
};

}  // namespace varve::version
