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
/// It names the catalog's last commit. A writer voids the note before it begins a transaction, and
/// writes it again when it closes the repository without an error. Thread-safe.
class SettledMark {
 public:
  /// Lifetime: `files` outlives the object.
  SettledMark(io::FileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}

  struct Note {
    bool settled = false;  ///< No file but the catalog has to be completed.
    /// The series that may have to be arranged; nullopt if any of them may.
    std::optional<std::set<SeriesId>> unarranged;
  };

  /// Reads the note. It counts only if it names this state of this catalog.
  [[nodiscard]] Note read(const std::string& catalog_id, std::uint64_t commit);
  /// Makes the note void on disk, unless it is. The caller calls it before each change.
  [[nodiscard]] Result<void> clear();
  /// Notes that nothing is left to complete at this commit. Of more than 100 unarranged series, the
  /// note says only that any may be one.
  [[nodiscard]] Result<void> write(const std::string& catalog_id, std::uint64_t commit,
                                   const std::optional<std::set<SeriesId>>& unarranged);

 private:
  [[nodiscard]] Result<void> put(const std::string& bytes);

  io::FileSystem& files_;
  const std::string path_;
  std::mutex mutex_;
  bool cleared_ = false;  // The file on disk is missing or void.
  std::string on_disk_;   // The note that was read or written last, unless it is void.
};

}  // namespace varve::repo
