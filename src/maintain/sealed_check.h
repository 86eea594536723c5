// SPDX-License-Identifier: Apache-2.0
// Checks the sealed files of an encrypted repository without its key.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "crypto/sealed_file.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::maintain {

/// The result of a check by checksums alone. Finds accidents, not changes by an attacker.
struct SealedFilesReport {
  struct Damage {
    std::string path;
    std::string what;
  };
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<Damage> damages;
  /// Files with damage only in the last blocks, as after a crash. The next use of the repository
  /// writes or drops the last blocks. If a power cut left the last blocks of an append but not the
  /// first blocks, the file counts as damaged until the next use.
  std::vector<std::string> incomplete;
  bool finished = true;  ///< False if the caller stopped the check.
};

/// The sealed files of a repository.
struct SealedFiles {
  struct File {
    std::string path;
    crypto::SealedPlace place;
    std::uint64_t bytes = 0;
  };
  std::vector<File> files;
  std::uint64_t bytes = 0;                         ///< Sum of the sizes.
  std::vector<SealedFilesReport::Damage> damages;  ///< Unlistable folders.
};

struct SealedCheckOptions {
  std::stop_token stop{};
  /// Called with the number of bytes read so far. May be empty.
  std::function<void(std::uint64_t bytes)> progress{};
};

/// Lists all sealed files (docs/FORMAT.md §14.4) but temporary files. `files` is the file system
/// that does not open sealed files, and `repository` the folder.
[[nodiscard]] SealedFiles list_sealed_files(io::FileSystem& files, const std::string& repository);

/// Checks the files of `list`. A writer may be active.
/// Errors: kUnsupported for a file of a newer format.
[[nodiscard]] Result<SealedFilesReport> check_sealed_files(io::FileSystem& files,
                                                           const SealedFiles& list,
                                                           const SealedCheckOptions& options = {});

}  // namespace varve::maintain
