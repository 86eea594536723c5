// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "maintain/manifest_file.h"
#include "meta/lmdb.h"
#include "series/series_parts.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::series {

/// Writes the labels of a series: docs/ORDERING.md O20. A change is appended; the labels are
/// written as a whole once the changes take more space than the labels. Thread-safe.
class LabelsWriter {
 public:
  /// Lifetime: `parts` outlives the object.
  explicit LabelsWriter(const SeriesParts& parts) : parts_(parts) {}

  /// Writes the present records of the versions `changed`, and of the series. The caller calls
  /// change() after each commit with changed records. Returns whether the write succeeded; logs
  /// errors.
  bool change(const std::vector<VersionNumber>& changed);
  /// Writes the labels as a whole. Returns whether the write succeeded; logs errors.
  bool rewrite();
  /// Writes the labels again if their last write failed. Errors: those of the write.
  [[nodiscard]] Result<void> write_left();
  /// Returns whether the labels agree with the catalog, apart from the clock's record and the
  /// sequence number, and need no rewriting. `labels` are the labels on disk.
  [[nodiscard]] Result<bool> agree(const meta::Txn& txn, const maintain::Labels& labels) const;
  /// Returns the stamp of the labels on disk; 0 for unreadable labels.
  [[nodiscard]] std::uint64_t stamp();

 private:
  /// Returns false if the labels must be written as a whole. The caller holds the mutex.
  [[nodiscard]] Result<bool> append(const std::vector<VersionNumber>& changed);
  [[nodiscard]] Result<void> write_all();
  /// Finds the end of the labels on disk. Returns false if no update may follow, because the labels
  /// are damaged or lack more than the versions `changed`.
  [[nodiscard]] Result<bool> find_end(const meta::Txn& txn,
                                      const std::vector<VersionNumber>& changed);
  /// Passes on the sequence number of the written labels.
  [[nodiscard]] Result<void> tell_sequence(const meta::Txn& txn) const;
  /// Notes and logs a failure of write_all(). Returns whether `written` is no error. The caller
  /// holds the mutex.
  bool note(const Result<void>& written);

  const SeriesParts& parts_;
  std::mutex mutex_;    // Held while labels are written; innermost.
  bool left_ = false;   // The last write failed.
  bool known_ = false;  // The members below describe the labels on disk, which are up to date.
  std::uint64_t base_bytes_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t stamp_ = 0;
  std::uint64_t settings_ = 0;  // Checksum of the settings, except settings changed by each seal.
};

}  // namespace varve::series
