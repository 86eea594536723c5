// SPDX-License-Identifier: Apache-2.0
// An attack on the lengths of chunks.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ingest/chunker.h"
#include "ingest/gear_chunker.h"

namespace varve::fingerprinting {

using Lengths = std::vector<std::uint32_t>;

/// Returns the lengths of the chunks of a file.
[[nodiscard]] Lengths lengths_of(const ingest::Chunker& chunker, std::string_view file);

/// Returns the share of the file's chunks that the seen lengths have in one piece: 1 if all of them
/// follow each other there.
[[nodiscard]] double longest_match(const Lengths& file, const Lengths& seen);

/// Recovers the table of a keyed gear16 from a file and the lengths of its chunks, as the attacks
/// of 2025 recover the parameters of other chunkers ("Chunking Attacks on File Backup Services
/// using Content-Defined Chunking", "Breaking and Fixing Content-Defined Chunking").
///
/// A chunk of at most the average ended where all bits of the hash but the lowest one were zero.
/// Bit j of the hash is row j of the matrices, applied to the last byte, plus what lower rows give:
/// a linear equation for row j, once the rows below it are known. Returns nullopt if the equations
/// contradict each other.
[[nodiscard]] std::optional<ingest::Gear16Table> recover_gear16(std::string_view file,
                                                                const Lengths& lengths,
                                                                ingest::ChunkSizes sizes);

}  // namespace varve::fingerprinting
