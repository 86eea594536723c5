// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "io/file_system.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::repo {

/// The file `settled`: a note that the last writer left nothing to complete (docs/ORDERING.md O37).
/// The note names the catalog's last commit. A writer voids the note before the first transaction,
/// and writes the note again when closing the repository without an error. Thread-safe.
class SettledMark {
 public:
  /// Lifetime: `files` outlives the object.
  SettledMark(io::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  struct Note {
    bool settled = false;  ///< No file but the catalog has to be completed.
    /// The series that may have to be arranged; nullopt if any series may.
    std::optional<std::set<SeriesId>> unarranged;
  };

  /// Reads the note. The note counts only if it names `commit` of the catalog `catalog_id`.
  [[nodiscard]] Note read(const std::string& catalog_id, std::uint64_t commit);
  /// Makes the note void on disk, if needed. The caller calls clear() before each change.
  [[nodiscard]] Result<void> clear();
  /// Notes that nothing is left to complete at `commit`. Of more than 100 unarranged series, the
  /// note says only that any series may be unarranged.
  [[nodiscard]] Result<void> write(const std::string& catalog_id, std::uint64_t commit,
                                   const std::optional<std::set<SeriesId>>& unarranged);

 private:
  [[nodiscard]] Result<void> put(const std::string& bytes);

  io::FileSystem& files_;
  const std::string path_;
  std::mutex mutex_;
  bool cleared_ = false;  // The file on disk is missing or void.
  std::string on_disk_;   // The last note read or written, unless void.
};

}  // namespace varve::repo
