// SPDX-License-Identifier: Apache-2.0
// Notes about data files that must stay on the disk of the writer's folder. docs/FORMAT.md §15.4.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::remote {

enum class LocalNote : std::uint8_t {
  kChanged,  ///< Possibly uploaded bytes were written again, or the store has lost bytes: the file
             ///< is uploaded again.
  kDamaged,  ///< The file had damaged containers at its upload.
};

/// A pseudo file to note as changed: the next head writes the whole catalog, and names no earlier
/// catalog object.
inline constexpr const char* kWholeCatalog = "catalog";

/// The notes of one folder, in the file `replica/files`. Thread-safe. Only one process writes.
class LocalNotes {
 public:
  /// Reads the notes of the repository at `root`. A missing file means no notes.
  /// Errors: kCorrupt; errors of the disk. Lifetime: `files` outlives the notes.
  [[nodiscard]] static Result<std::unique_ptr<LocalNotes>> load(io::FileSystem& files,
                                                                const std::string& root);

  /// Adds a note about a file, by its path in the repository. The note is on disk on return.
  [[nodiscard]] Result<void> add(LocalNote note, const std::string& path);
  /// Removes notes.
  [[nodiscard]] Result<void> remove(LocalNote note, const std::set<std::string>& paths);
  [[nodiscard]] bool has(LocalNote note, const std::string& path) const;
  /// Returns whether any note keeps the file on the disk.
  [[nodiscard]] bool has_any(const std::string& path) const;
  [[nodiscard]] std::set<std::string> paths(LocalNote note) const;

 private:
  using Notes = std::set<std::pair<LocalNote, std::string>>;
  LocalNotes(io::FileSystem& files, const std::string& root) : files_(files), root_(root) {}
  [[nodiscard]] Result<void> replace(Notes notes);

  io::FileSystem& files_;
  const std::string root_;
  mutable std::mutex mutex_;  // Innermost. Guards notes_.
  Notes notes_;
};

}  // namespace varve::remote
