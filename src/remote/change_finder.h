// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "meta/lmdb.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "remote/replica_files.h"
#include "remote/replica_state.h"
#include "remote/replicator_parts.h"
#include "varve/result.h"

namespace varve::remote {

struct ReplicationRound;

/// Finds the differences between the newest head and the repository. Not thread-safe: the
/// replicator's lock guards all calls.
class ChangeFinder {
 public:
  /// `copy` is the catalog of the newest head, `head`, and `objects` the map of the head.
  /// Lifetime: the arguments outlive the finder.
  ChangeFinder(const ReplicatorParts& parts, const ReplicaState& state, const meta::Env& copy,
               const Head& head, const ObjectMap& objects)
      : parts_(parts), state_(state), copy_(copy), head_(head), objects_(objects) {}

  /// Fills the round with the differences of the catalog's last commit. Returns whether a new head
  /// would differ.
  [[nodiscard]] Result<bool> take_snapshot(ReplicationRound& round);
  /// Fills the round with segments of open versions that will not grow any more.
  [[nodiscard]] Result<void> find_early(ReplicationRound& round) const;
  /// Returns whether the catalog was rebuilt since the newest head.
  [[nodiscard]] Result<bool> is_rebuilt(const meta::Txn& catalog) const;

  /// Learns that the map of objects is another map.
  void note_all();
  /// Learns that the extents of a file have changed in the map.
  void note_path(const std::string& path);
  /// The looks at files, to be remembered with the next head.
  [[nodiscard]] const std::map<std::string, FileLook>& looks() const { return looks_; }
  void forget_looks() { looks_.clear(); }

 private:
  using Round = ReplicationRound;
  [[nodiscard]] Result<meta::ReadTxn> begin_snapshot(Round& round,
                                                     std::vector<ReplicaFile>& others);
  [[nodiscard]] Result<bool> compare(Round& round, const std::vector<ReplicaFile>& others,
                                     const meta::ReadTxn* last, const meta::ReadTxn& now);
  [[nodiscard]] Result<void> find_all(Round& round, const meta::ReadTxn& now);
  /// Finds the differences from the snapshot `last` of the newest head. Returns false if the
  /// snapshot does not show all differences.
  [[nodiscard]] Result<bool> find_changed(Round& round, const meta::ReadTxn& last,
                                          const meta::ReadTxn& now);
  [[nodiscard]] bool add_others(Round& round, const std::vector<ReplicaFile>& others) const;
  /// Returns whether the changes since the base of the newest head are worth a new base.
  [[nodiscard]] bool is_base_due() const;

  const ReplicatorParts& parts_;
  const ReplicaState& state_;
  const meta::Env& copy_;
  const Head& head_;
  const ObjectMap& objects_;
  std::set<std::string> others_;           // Files in objects_ except segments and volumes.
  std::set<std::string> uncut_;            // Files with objects whose dead end is worth a copy.
  std::map<std::string, FileLook> looks_;  // To be remembered with the next head.
};

}  // namespace varve::remote
