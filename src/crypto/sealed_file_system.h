// SPDX-License-Identifier: Apache-2.0
// A file system that seals the files of a repository that have content of their own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "crypto/sealed_file.h"
#include "io/file_system.h"

namespace varve::crypto {

/// Returns what the file at a path is, or nothing for a file that others seal or that is not
/// sealed.
using SealedPlaceOf = std::function<std::optional<SealedPlace>(const std::string& path)>;

/// Returns a file system that seals the files that `place_of` names, and passes all other calls to
/// `below`. It gives no descriptor of a sealed file, and renames one only to a name of the same
/// place. Sizes of trees are those on disk. Thread-safe.
[[nodiscard]] std::unique_ptr<io::FileSystem> make_sealed_file_system(
    std::unique_ptr<io::FileSystem> below, std::shared_ptr<const KeyRing> keys,
    SealedPlaceOf place_of);

}  // namespace varve::crypto
