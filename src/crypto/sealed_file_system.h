// SPDX-License-Identifier: Apache-2.0
// A file system that seals files of a repository block by block.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "crypto/sealed_file.h"
#include "io/file_system.h"

namespace varve::crypto {

/// Returns the identity of the sealed file at a path; nullopt for an unsealed file, and for a file
/// sealed elsewhere.
using SealedPlaceOf = std::function<std::optional<SealedPlace>(const std::string& path)>;

/// Returns a file system that seals the files named by `place_of`, and passes all other calls to
/// `below`. Gives no descriptor of a sealed file, and renames a sealed file only to a name of the
/// same place. Sizes of trees are sizes on disk. Thread-safe.
[[nodiscard]] std::unique_ptr<io::FileSystem> make_sealed_file_system(
    std::unique_ptr<io::FileSystem> below, std::shared_ptr<const KeyRing> keys,
    SealedPlaceOf place_of);

}  // namespace varve::crypto
