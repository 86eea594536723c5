// SPDX-License-Identifier: Apache-2.0
// The snapshot of the catalog that the newest head has, open until the next head. decisions/99.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::replica {

/// Keeps a snapshot open, so that the next head compares only the pages that differ from it. While
/// a snapshot is open, LMDB uses none of its pages again, and the catalog's file grows instead. So
/// the snapshot ends once that takes much space. It is then missing, and a head compares the whole
/// catalog. Thread-safe.
class KeptSnapshot {
 public:
  /// Bytes by which the catalog's file may grow meanwhile, or a quarter of its length if that is
  /// more.
  static constexpr std::uint64_t kGrowthMin = std::uint64_t{64} << 20;

  /// Opens a snapshot of the last commit. Call it before this process writes to the catalog. An
  /// error leaves no snapshot. Lifetime: `catalog` outlives close().
  void begin(const meta::Env& catalog);
  /// Takes the snapshot out, to compare with it. Nullopt if there is none.
  [[nodiscard]] std::optional<meta::ReadTxn> take();
  /// Puts back what take() returned. `next` is the snapshot of a head that is not created yet.
  void put_back(std::optional<meta::ReadTxn> last, std::optional<meta::ReadTxn> next);
  /// Keeps the snapshot `next` instead: its head was created.
  void advance();
  /// Ends the snapshots if the catalog has grown too much. Call it before each write.
  void before_write(const meta::Env& catalog);
  /// Ends the snapshots, and keeps none from now on.
  void close();

 private:
  std::mutex mutex_;  // Innermost. Guards the members below.
  bool closed_ = false;
  std::optional<meta::ReadTxn> last_;
  std::optional<meta::ReadTxn> next_;
  std::uint64_t last_bytes_ = 0;  // Used bytes of the catalog when the snapshot was opened.
  std::uint64_t next_bytes_ = 0;
};

}  // namespace varve::replica
