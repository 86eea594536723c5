// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::maintain {

/// A damaged file without loss of data: the next writer ignores the file or creates a new file.
struct DerivedFault {
  std::string path;
  Error error;
  std::string dependent{};       ///< File of no use without the damaged file; may be empty.
  bool after_power_cut = false;  ///< True if a power cut may leave the damage.
};

/// The derived files to read.
enum class DerivedFiles : std::uint8_t {
  kAll,          ///< No writer may be active.
  kBesideIndex,  ///< All but the indexes of series.
};

/// Finds damaged index files and states of source files in a repository. Implemented in other
/// rooms. Errors: the errors of listing folders.
using FindDerivedFaults = std::function<Result<std::vector<DerivedFault>>(
    io::FileSystem& files, const std::string& repository, DerivedFiles which)>;

}  // namespace varve::maintain
