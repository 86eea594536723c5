// SPDX-License-Identifier: Apache-2.0
// The names and inodes of an open version, in three layers: the changes since the last checkpoint
// in memory, then an LMDB environment (the overlay), then the sealed tree of the base if the
// version started as a clone.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "meta/lmdb.h"
#include "varve/result.h"
#include "version/clone_base.h"
#include "version/open_inode.h"
#include "version/overlay.h"
#include "version/overlay_counters.h"
#include "version/overlay_names.h"

namespace varve::version {

/// The tree of an open version. Not thread-safe: OpenState::mutex guards it, except for commit().
///
/// Memory holds at most kInodesCached clean inodes. Changed inodes wait for the next checkpoint;
/// the checkpointer makes a checkpoint once changed() reaches kChangedMax.
class OpenTree {
 public:
  static constexpr std::size_t kInodesCached = 32768;
  static constexpr std::size_t kChangedMax = 65536;

  /// `base` may be null. Lifetime: `base` must outlive the tree.
  explicit OpenTree(const CloneBase* base = nullptr)
      : base_(base), counters_(base != nullptr ? std::optional(base->end()) : std::nullopt) {}
  /// Attaches an overlay to the tree. Before attach(), the tree consists of the base and the inodes
  /// in memory, and commit() must not be called.
  /// Lifetime: the overlay must outlive the tree.
  void attach(Overlay& overlay) { overlay_ = &overlay; }
  /// Reads the counters. Must be called once, before any function but attach().
  /// Errors: as OverlayCounters::load().
  [[nodiscard]] Result<void> load();

  /// Returns an inode. Errors: kStale if the inode does not exist.
  /// Lifetime: the pointer is valid until the next call that may evict: evict(), erase(), list().
  [[nodiscard]] Result<OpenInode*> get(Ino ino);
  /// Returns the inode of a name; nullopt if the directory does not have the name.
  [[nodiscard]] Result<std::optional<Ino>> find(Ino directory, std::string_view name);
  /// Calls `visit` for the names > `after` in byte order until `visit` returns false. Evicts
  /// between the calls, so that a large directory does not stay in memory.
  [[nodiscard]] Result<void> list(
      Ino directory, std::string_view after,
      const std::function<Result<bool>(std::string_view name, Ino ino)>& visit);

  /// Calls `visit` for each inode in memory. All inodes with handles or changes are in memory.
  [[nodiscard]] Result<void> for_each_in_memory(
      const std::function<Result<void>(OpenInode&)>& visit);

  /// Adds a new inode, to be recorded by the next checkpoint. Lifetime: as for get().
  [[nodiscard]] OpenInode* add(std::unique_ptr<OpenInode> inode);
  /// Adds a clean inode: the next checkpoint does not record the inode unless touched.
  void add_clean(std::unique_ptr<OpenInode> inode) { inodes_[inode->ino] = std::move(inode); }
  /// Returns the numbers beside the tree. A checkpoint records the numbers with the tree.
  [[nodiscard]] OverlayCounters& counters() { return counters_; }
  [[nodiscard]] const OverlayCounters& counters() const { return counters_; }
  /// Returns the number of inodes with changes.
  [[nodiscard]] std::size_t changed_inodes() const { return dirty_.size(); }
  void set_name(Ino directory, std::string_view name, Ino ino);
  void clear_name(Ino directory, std::string_view name);
  /// Notes that the next checkpoint must record the inode. Has no effect on a removed inode.
  void touch(OpenInode& inode);
  /// Removes an inode without a name and without a handle.
  void erase(Ino ino);
  /// Removes the inode's record. The inode stays in memory for the open handles.
  void erase_record(OpenInode& inode);

  /// Returns the number of changes in memory.
  [[nodiscard]] std::size_t changed() const { return dirty_.size() + names_.size(); }
  /// Drops clean inodes from memory if there are more than kInodesCached.
  void evict();

  /// The changes written by a checkpoint.
  struct Changes {
    struct Name {
      std::string key;  // As meta::dirent_key().
      Ino ino = 0;      // 0: removed.
      std::uint64_t sequence = 0;
    };
    struct Record {
      Ino ino = 0;
      std::optional<std::string> bytes;  // nullopt: removed.
      std::vector<std::byte> tail;
    };
    std::vector<Name> names;
    std::vector<Record> records;
    OverlayNumbers numbers;  // The caller sets changed_at and rewrite_counts.
  };
  /// Takes the changes. `encode` returns an inode's record and tail.
  [[nodiscard]] Result<Changes> take_changes(
      const std::function<Result<Changes::Record>(OpenInode&)>& encode);
  /// Writes the changes in one durable transaction. Needs no lock.
  [[nodiscard]] Result<void> commit(const Changes& changes) const;
  /// Drops the changes from memory after commit() has written the changes to the overlay.
  void settle(const Changes& changes);
  /// Marks the changes again after a failed commit(), for the next checkpoint.
  void restore(const Changes& changes);

  /// Calls `visit(ino, tail)` for the uncut bytes of files recorded by the last checkpoint.
  [[nodiscard]] Result<void> for_each_tail(
      const std::function<Result<void>(Ino, std::string_view)>& visit) const;

 private:
  struct NameChange {
    Ino ino = 0;
    std::uint64_t sequence = 0;
  };
  class Names;

  [[nodiscard]] Ino base_end() const { return base_ != nullptr ? base_->end() : 0; }
  [[nodiscard]] bool in_base(Ino ino) const { return ino < base_end(); }
  /// Remembers the inode of a name of the base, because the next get() often asks for the same
  /// inode. Returns the inode's number.
  Ino remember(const catalog::TreeEntry& found);
  [[nodiscard]] Result<std::optional<Ino>> find_in_base(Ino directory, std::string_view name);
  [[nodiscard]] Result<void> commit_names(meta::WriteTxn& txn, const Changes& changes) const;

  Overlay* overlay_ = nullptr;
  const CloneBase* const base_;
  std::unordered_map<Ino, std::unique_ptr<OpenInode>> inodes_;
  std::unordered_map<Ino, bool> dirty_;  // True: the record is to be removed.
  std::unordered_set<Ino> removing_;     // Inodes removed by the current checkpoint.
  std::map<std::string, NameChange, std::less<>> names_;  // By meta::dirent_key().
  std::uint64_t sequence_ = 0;
  std::size_t evict_at_ = kInodesCached;
  OverlayCounters counters_;
  // First inode number without records and names in the overlay.
  Ino overlay_end_ = ~Ino{0};
  Ino remembered_ino_ = 0;
  catalog::TreeEntry remembered_;
  NameBatches batches_;
};

}  // namespace varve::version
