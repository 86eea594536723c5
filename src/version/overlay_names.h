// SPDX-License-Identifier: Apache-2.0
// The names in an open version's overlay, in byte order. A plain overlay stores names in byte
// order. An encrypted overlay stores names by keyed hash (docs/FORMAT.md §14.3), so a reader sorts
// the names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meta/lmdb.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::version {

/// A name of a directory.
struct OverlayName {
  std::string name;
  Ino ino = 0;  ///< 0: removed.
};

/// Returns the overlay's key of a name.
[[nodiscard]] std::string name_key(const meta::Env& overlay, Ino directory, std::string_view name);
/// Returns the value of a name's record.
[[nodiscard]] std::string encode_name(const meta::Env& overlay, std::string_view name, Ino ino);
/// Returns the inode of a name: 0 for a removed name, nullopt if the overlay lacks the name.
/// Errors: kCorrupt.
[[nodiscard]] Result<std::optional<Ino>> find_name(const meta::Txn& overlay, Ino directory,
                                                   std::string_view name);

/// Calls `visit` for each name of an overlay, in the order of the keys; of a part of the overlay if
/// `prefix` is the key of a directory. `visit` returns false to stop.
/// Errors: kCorrupt.
[[nodiscard]] Result<void> for_each_overlay_name(
    const meta::Txn& overlay, const std::function<bool(Ino directory, OverlayName name)>& visit,
    std::string_view prefix = "");

/// Some of a directory's names, ascending.
struct NameBatch {
  std::vector<OverlayName> names;
  bool more = false;      ///< True if the directory may have names after the last of `names`.
  std::size_t bytes = 0;  ///< Approximate memory for the names.
};

/// Bounds of a batch.
struct NameLimits {
  std::size_t names;  ///< For a plain overlay.
  /// Memory for the names of an encrypted overlay. Each batch takes a walk over all names of the
  /// directory, so a larger batch takes fewer walks.
  std::size_t bytes;
};

/// Returns the first names > `after`, or the first of all names if `after` is empty; at least one
/// name if there are any. Errors: kCorrupt.
[[nodiscard]] Result<NameBatch> read_names(const meta::Txn& overlay, Ino directory,
                                           std::string_view after, const NameLimits& limits);

/// Keeps the last batches of encrypted overlays, because a directory is listed in many steps. Not
/// thread-safe.
class NameBatches {
 public:
  /// Returns a batch as read_names() does, which may begin before `after`.
  [[nodiscard]] Result<std::shared_ptr<const NameBatch>> read(const meta::Txn& overlay,
                                                              Ino directory,
                                                              std::string_view after);

 private:
  struct Kept {
    Ino directory = 0;
    std::uint64_t commit = 0;
    std::string after;
    std::shared_ptr<const NameBatch> batch;
  };
  std::list<Kept> kept_;  // The most recently used batch first.
};

}  // namespace varve::version
