// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::maintain {

/// A damaged file from which nothing is lost: the next writer does without it, or makes it again.
struct DerivedFault {
  std::string path;
  Error error;
  std::string dependent{};       ///< A file that is of no use without this one; may be empty.
  bool after_power_cut = false;  ///< A power cut may leave such a file.
};

/// Which derived files to read.
enum class DerivedFiles : std::uint8_t {
  kAll,          ///< No writer may be active.
  kBesideIndex,  ///< All but the indexes of series.
};

/// Finds damaged index files and states of source files in a repository. Other rooms read them.
/// Errors: those of listing folders.
using FindDerivedFaults = std::function<Result<std::vector<DerivedFault>>(
    io::FileSystem& files, const std::string& repository, DerivedFiles which)>;

}  // namespace varve::maintain
