// SPDX-License-Identifier: Apache-2.0
// Keyed chunkers: chunkers with a table derived from the repository's key. FORMAT §14.5.
//
// The tables are a second line only: a known file and the lengths of its chunks give a table away
// (decisions/086).
#pragma once

#include <memory>
#include <string_view>

#include "crypto/key_ring.h"
#include "ingest/chunker.h"
#include "ingest/fastcdc_chunker.h"
#include "ingest/gear_chunker.h"
#include "varve/result.h"

namespace varve::ingest {

inline constexpr std::string_view kKeyedGear16Id = "gear16-keyed";
inline constexpr std::string_view kKeyedFastCdcId = "fastcdc2020-keyed";

/// Returns whether a table is good: both matrices and their sum are invertible, and no run of one
/// byte ends a chunk in a repository.
[[nodiscard]] bool is_good_gear16_table(const Gear16Table& table);

/// Return the tables of a repository. Errors: kIo without memory.
[[nodiscard]] Result<Gear16Table> derive_gear16_table(const crypto::KeyRing& keys);
[[nodiscard]] Result<FastCdcTable> derive_fastcdc_table(const crypto::KeyRing& keys);

/// Create the keyed chunkers. The sizes must obey the chunker's ChunkSizeRule.
/// Errors: kIo without memory.
[[nodiscard]] Result<std::unique_ptr<Chunker>> make_keyed_gear16(ChunkSizes sizes, Gear16Form form,
                                                                 const crypto::KeyRing& keys);
[[nodiscard]] Result<std::unique_ptr<Chunker>> make_keyed_fastcdc(ChunkSizes sizes,
                                                                  const crypto::KeyRing& keys);

}  // namespace varve::ingest
