// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "maintain/derived_faults.h"
#include "maintain/open_losses.h"
#include "store/folder_store.h"
#include "varve/result.h"

namespace varve::maintain {

/// Refuses a repository with a lower sequence number than the local machine remembers. Reads the
/// remembered number before calling `present`, which returns the number in the repository.
using CompareSequence = std::function<Result<void>(
    const std::string& repository_id, const std::function<Result<std::uint64_t>()>& present)>;

/// The parts of a repair implemented in other rooms.
struct RepairHelpers {
  store::StoreOpener open_store{};  ///< Empty if all data is on the disk.
  FindDerivedFaults find_derived{};
  FindUnstoredFiles find_unstored{};   ///< If empty, the repair leaves open versions out.
  CompareSequence compare_sequence{};  ///< Called for an encrypted repository, before any write.
};

}  // namespace varve::maintain
