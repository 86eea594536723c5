// SPDX-License-Identifier: Apache-2.0
// The table `references`: the chunks with more than one reference in the newest version of a
// series. Derived from the version's tree. The table lets a seal find the chunks of a version from
// the changes alone.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/id_runs.h"
#include "meta/lmdb.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::catalog {

/// The number of references to each chunk, or the change of the number. Not thread-safe. Memory: up
/// to 32 bytes per run of chunks with the same number.
class ReferenceCounts {
 public:
  /// Adds `references`, possibly negative, to the number of each chunk of the run.
  void add(const base::IdRun& run, std::int64_t references);

  /// Consecutive chunk ids with the same non-zero number of references.
  struct Piece {
    std::uint64_t first = 0;
    std::uint64_t end = 0;  ///< The id after the last id.
    std::int64_t references = 0;
  };
  /// Returns all pieces, ascending. A piece stays inside a single birth.
  [[nodiscard]] std::vector<Piece> pieces();

 private:
  struct Edge {
    std::uint64_t at = 0;
    std::int64_t change = 0;  // From the ids before `at` to the ids from `at` on.
  };
  void compact();
  std::vector<Edge> edges_;
  std::size_t compact_at_ = std::size_t{1} << 20;
};

/// The references of a version during its seal.
class VersionReferences {
 public:
  /// Takes the references of the whole version.
  [[nodiscard]] static VersionReferences of_all(ReferenceCounts counts);
  /// Takes the changes since the sealed version `base`. Reads only the records of changed chunks.
  /// Errors: kCorrupt if the table belongs to another version than `base`, or contradicts the
  /// changes. The caller then counts the whole version.
  [[nodiscard]] static Result<VersionReferences> of_changes(const meta::Txn& txn, SeriesId series,
                                                            VersionNumber base,
                                                            ReferenceCounts changes);

  /// Returns the chunks with references.
  [[nodiscard]] const base::IdRuns& chunks() const { return chunks_; }
  /// Replaces the table by the version's table. The transaction must see the same table as
  /// of_changes().
  [[nodiscard]] Result<void> put(meta::WriteTxn& txn, SeriesId series, VersionNumber number) const;

 private:
  bool all_ = false;
  base::IdRuns chunks_;
  // Keys and values of the changed records. Without a value, the record is erased.
  std::vector<std::pair<std::string, std::string>> records_;
};

/// Returns whether the table belongs to the version.
[[nodiscard]] bool has_references(const meta::Txn& txn, SeriesId series, VersionNumber number);
/// Erases the records of a series. The next seal counts the whole version.
[[nodiscard]] Result<void> erase_references(meta::WriteTxn& txn, SeriesId series);
/// Returns the chunks with more than one reference, as recorded in the table.
/// Errors: kCorrupt if a record is damaged.
[[nodiscard]] Result<std::vector<ReferenceCounts::Piece>> stored_references(const meta::Txn& txn,
                                                                            SeriesId series);

}  // namespace varve::catalog
