// SPDX-License-Identifier: Apache-2.0
// Corrects one wrong byte in a container's header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "format/container_keys.h"
#include "format/container_record.h"
#include "store/segment_store.h"
#include "varve/result.h"

namespace varve::maintain {

/// A byte of a file with its correct value.
struct HeaderFix {
  std::uint64_t offset = 0;  ///< Offset in the file.
  std::byte value{};
};

/// Finds the single wrong byte of a header: tries all values of all bytes until the header's
/// checksums match. The search takes up to a few seconds. Returns nullopt if more than one byte is
/// wrong. `keys` are the keys of the repository's containers, or null.
[[nodiscard]] Result<std::optional<HeaderFix>> find_header_fix(
    store::SegmentStore& store, const format::ContainerKeys* keys, StoreId store_id,
    const format::ContainerRecord& record);

}  // namespace varve::maintain
