// SPDX-License-Identifier: Apache-2.0
// Compares chunks by small sketches of the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace varve::layout {

/// A sketch of a chunk's bytes: two chunks with the same value at the same index are probably
/// alike. Each value combines three minimum hashes over sampled places of the chunk: the
/// super-features of Shilane et al., "WAN Optimized Replication of Backup Datasets Using
/// Stream-Informed Delta Compression", FAST 2012.
using ChunkSketch = std::array<std::uint32_t, 4>;

/// Returns the sketch of a chunk's raw bytes. A pure function of the bytes.
[[nodiscard]] ChunkSketch sketch_of(std::span<const std::byte> raw);

}  // namespace varve::layout
