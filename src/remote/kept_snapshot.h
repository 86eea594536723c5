// SPDX-License-Identifier: Apache-2.0
// The snapshot of the newest head's catalog, kept open until the next head. decisions/099.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::remote {

/// Keeps a snapshot open, so the next head compares only pages that differ from the snapshot. LMDB
/// reuses no page of an open snapshot, so the catalog's file grows instead. Once the growth reaches
/// the limit, the snapshot ends. Without a snapshot, a head compares the whole catalog.
/// Thread-safe.
class KeptSnapshot {
 public:
  /// Growth limit of the catalog's file in bytes; a quarter of the file's used bytes if larger.
  static constexpr std::uint64_t kGrowthMin = std::uint64_t{64} << 20;

  /// Opens a snapshot of the last commit. Call begin() before the process writes to the catalog. An
  /// error leaves no snapshot. Lifetime: `catalog` outlives close().
  void begin(const meta::Env& catalog);
  /// Takes out the snapshot, for a comparison. Returns nullopt without a snapshot.
  [[nodiscard]] std::optional<meta::ReadTxn> take();
  /// Puts back the result of take(). `next` is the snapshot of a head still to be created.
  void put_back(std::optional<meta::ReadTxn> last, std::optional<meta::ReadTxn> next);
  /// Replaces the snapshot by `next`, whose head was created.
  void advance();
  /// Ends the snapshots if the catalog has grown beyond the limit. Call before_write() before each
  /// write.
  void before_write(const meta::Env& catalog);
  /// Ends the snapshots, and keeps no snapshots from now on.
  void close();

 private:
  std::mutex mutex_;  // Innermost. Guards the members below.
  bool closed_ = false;
  std::optional<meta::ReadTxn> last_;
  std::optional<meta::ReadTxn> next_;
  std::uint64_t last_bytes_ = 0;  // Used bytes of the catalog at the opening of last_.
  std::uint64_t next_bytes_ = 0;
};

}  // namespace varve::remote
