// SPDX-License-Identifier: Apache-2.0
// Stores that Varve has refused because their source seemed to be incomplete.
#pragma once

#include <cstdint>

#include "varve/types.h"

namespace varve {

/// Why a store was refused.
enum class RefusalReason : std::uint8_t {
  kEmpty = 1,   ///< The source had no names, or a stream no bytes.
  kShrunk = 2,  ///< The source had lost most of the newest version's content.
};

/// The last refused store into a series. A seal of a newer version of the series ends the concern.
struct RefusedStore {
  RefusalReason reason = RefusalReason::kEmpty;
  Timestamp at;
};

}  // namespace varve
