// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "history_model.h"

namespace varve::layout {

/// Returns the number of located chunks whose frames have a prefix.
inline std::size_t delta_chunks(History& history) {
  const auto txn = must(meta::ReadTxn::begin(history.catalog()));
  std::size_t found = 0;
  must(catalog::for_each_location(
      txn, kStore, ChunkId{}, [&](const catalog::LocationRecord& at) -> Result<bool> {
        const auto header = must(history.layout().header(at.container));
        for (std::uint32_t i = 0; i < at.count; ++i) {
          found += header->frames[header->chunks[at.index + i].frame].prefix != 0 ? 1 : 0;
        }
        return true;
      }));
  return found;
}

}  // namespace varve::layout
