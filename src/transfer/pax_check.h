// SPDX-License-Identifier: Apache-2.0
// Checks of the headers of a pax archive, missing in libarchive.
#pragma once

#include <string_view>

#include "varve/result.h"

namespace varve::transfer {

/// Checks the headers of a tar member, from the first header on: libarchive ends a name at a zero
/// byte, so the member could take the name of another member. `headers` may be incomplete.
/// Errors: kInvalid for a name with a zero byte.
[[nodiscard]] Result<void> check_pax_names(std::string_view headers);

}  // namespace varve::transfer
