// SPDX-License-Identifier: Apache-2.0
// The files beside the versions of a series, as a whole.
#pragma once

#include <vector>

#include "copy/target.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::copy {

/// Returns the files of a series. Each folder comes before the files inside.
[[nodiscard]] Result<std::vector<BesideFile>> read_beside(Repository& repository, SeriesId series);

/// Makes the files of a series equal to `files`. Changes nothing if already equal.
/// Errors: the errors of BesideFiles; kExists if a version has the name of a file.
[[nodiscard]] Result<void> write_beside(Repository& repository, SeriesId series,
                                        const std::vector<BesideFile>& files);

}  // namespace varve::copy
