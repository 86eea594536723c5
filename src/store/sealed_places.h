// SPDX-License-Identifier: Apache-2.0
// The files of an encrypted repository that are sealed as files. docs/FORMAT.md §14.4.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "crypto/sealed_file_system.h"

namespace varve::store {

/// The kinds of sealed files. The values are stored.
enum class SealedKind : std::uint32_t {
  kOther = 0,  ///< A file unknown to this version of Varve.
  kManifest = 1,
  kLabels = 2,
  kIndexRun = 3,
  kIndexSnapshot = 4,
  kSources = 5,
  kBeside = 6,
  kAliases = 7,
  kSorting = 8,
  kZeroBins = 9,
  kZeroLog = 10,
  kScrub = 11,
  kChecked = 12,
  kTails = 13,
};

/// Returns the place of the file at `path` in the repository at `root`. Returns nullopt for clear
/// files, and for the files sealed by LMDB, the segment store and the staging area. A file of an
/// unknown name in a folder of sealed files is of the kind kOther.
[[nodiscard]] std::optional<crypto::SealedPlace> sealed_place(std::string_view root,
                                                              std::string_view path);

/// Returns a file system that seals the files with a place in the repository at `root`. Without
/// keys, returns `files` itself.
[[nodiscard]] std::unique_ptr<io::FileSystem> seal_files(
    std::unique_ptr<io::FileSystem> files, std::shared_ptr<const crypto::KeyRing> keys,
    std::string root);

}  // namespace varve::store
