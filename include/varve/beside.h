// SPDX-License-Identifier: Apache-2.0
// Small files of backup programs beside the versions of a series: markers, configuration, logs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "varve/backup.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve {

/// Limits of one series: the size of a file, the number of names, and the bytes of all files.
inline constexpr std::size_t kBesideFileBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kBesideNamesMax = 256;
inline constexpr std::size_t kBesideBytesMax = std::size_t{4} << 20;

/// The files of one series outside all versions: regular files, symbolic links, and one level of
/// folders. The files have no history, no extended attributes and one name each. The series itself
/// is the directory kRootIno. Thread-safe.
///
/// A change of a name or of attributes is on disk when the call returns. Written bytes are on disk
/// after sync(), which a close also calls.
///
/// Common errors, of each function: kNotFound or kStale for a number or name that does not exist;
/// kCorrupt or kUnsupported for a change while the file on disk cannot be read; kReadOnly for a
/// change to a read-only repository; kNoSpace above the limits, or if the disk is full. Nothing is
/// changed then.
class BesideFiles {
 public:
  virtual ~BesideFiles() = default;

  /// Returns the entry with an inode number. Includes removed files still open.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<OpenEntry> get(Ino ino) = 0;
  /// Finds a name in the series or in a folder.
  /// Errors: the common errors; kNotDirectory.
  [[nodiscard]] virtual Result<OpenEntry> lookup(Ino directory, std::string_view name) = 0;
  /// Returns the number of an entry's directory.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<Ino> parent(Ino ino) = 0;
  /// Returns the entries of the series or of a folder, by name.
  /// Errors: the common errors; kCorrupt or kUnsupported if the file on disk cannot be read.
  [[nodiscard]] virtual Result<std::vector<std::pair<std::string, OpenEntry>>> list(
      Ino directory) = 0;

  /// Creates a regular file, a symbolic link, or, in the series, a folder.
  /// Errors: kExists; kNotPermitted for other types and for a folder in a folder; kInvalid or
  /// kNameTooLong for names that no file can have.
  [[nodiscard]] virtual Result<OpenEntry> create(Ino directory, std::string_view name,
                                                 const NewFile& file) = 0;
  /// Removes a file or link.
  /// Errors: kIsDirectory.
  [[nodiscard]] virtual Result<void> unlink(Ino directory, std::string_view name) = 0;
  /// Removes an empty folder.
  /// Errors: kNotDirectory; kNotEmpty.
  [[nodiscard]] virtual Result<void> remove_directory(Ino directory, std::string_view name) = 0;
  /// Renames an entry, as renameat2(2) does. Folders stay in the series.
  /// Errors: kExists with RenameMode::kNoReplace; kIsDirectory, kNotDirectory or kNotEmpty if the
  /// target cannot be replaced; kNotPermitted for a folder into a folder; kUnsupported with
  /// RenameMode::kExchange.
  [[nodiscard]] virtual Result<void> rename(Ino from_directory, std::string_view from_name,
                                            Ino to_directory, std::string_view to_name,
                                            RenameMode mode) = 0;
  /// Changes attributes. Returns the entry with its new attributes.
  /// Errors: kInvalid if a size is given for anything but a regular file; kTooLarge.
  [[nodiscard]] virtual Result<OpenEntry> set_attributes(Ino ino,
                                                         const AttributeChange& change) = 0;
  /// Returns the target of a symbolic link.
  /// Errors: kInvalid if the entry is none.
  [[nodiscard]] virtual Result<std::string> read_link(Ino ino) = 0;
  /// Opens a regular file. OpenFile::write() and allocate() return kTooLarge above
  /// kBesideFileBytesMax. After an unlink, an open file stays readable and writable.
  /// Errors: kIsDirectory; kInvalid for a link.
  [[nodiscard]] virtual Result<std::unique_ptr<OpenFile>> open(Ino ino, bool for_writing) = 0;
  /// Makes all written bytes durable.
  /// Errors: the common errors.
  [[nodiscard]] virtual Result<void> sync() = 0;
};

}  // namespace varve
