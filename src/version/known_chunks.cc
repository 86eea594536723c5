// SPDX-License-Identifier: Apache-2.0
#include "version/known_chunks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "restore/piece_reader.h"

namespace varve::version {
namespace {

/// Returns the place of a chunk in a container; nullopt if no container has the chunk.
std::optional<StoredPiece> place_of(layout::Layout& layout, ChunkId id, std::size_t bytes) {
  const auto where = layout.locate(id);
  if (!where) return std::nullopt;
  const auto place = layout.place_of(where->container);
  if (!place) return std::nullopt;
  StoredPiece piece;
  piece.place = *place;
  piece.first = where->stored.plus(id.value - where->first.value);
  piece.count = 1;
  piece.bytes = static_cast<std::uint32_t>(bytes);
  piece.container = static_cast<std::uint32_t>(where->container);
  piece.index = where->index + static_cast<std::uint32_t>(id.value - where->first.value);
  return piece;
}

}  // namespace

// The index may name a chunk freed by a deletion, and the chunk may be damaged. So only bytes with
// the wanted fingerprint count.
void read_known_chunks(OpenState& state, std::span<const WantedChunk> wanted, KnownChunks which,
                       std::span<bool> found) {
  std::ranges::fill(found, false);
  std::vector<Fingerprint> fingerprints;
  fingerprints.reserve(wanted.size());
  for (const WantedChunk& chunk : wanted) fingerprints.push_back(chunk.fingerprint);
  const auto ids = state.pipeline.find_stored(fingerprints);
  auto& layout = *state.parts.layout;
  std::vector<std::size_t> filled(wanted.size());
  std::vector<StoredPiece> pieces;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!ids[i] || (which == KnownChunks::kOfSeries && is_pool(*ids[i]))) continue;
    const auto out = wanted[i].bytes;
    if (const auto unwritten = layout.read_unwritten(*ids[i])) {
      if (unwritten->size() != out.size()) continue;
      std::ranges::copy(*unwritten, out.begin());
      filled[i] = out.size();
    } else if (auto piece = place_of(layout, *ids[i], out.size())) {
      piece->file = static_cast<std::uint32_t>(i);
      pieces.push_back(*piece);
    }
  }
  std::ranges::sort(pieces, lies_before);
  restore::PieceReader(layout, state.parts.read_service->metrics())
      .read(pieces, [&](const StoredPiece& piece, std::uint64_t offset, std::size_t bytes,
                        const std::byte* data) {
        const auto out = wanted[piece.file].bytes;
        if (data != nullptr && offset + bytes <= out.size()) {
          std::memcpy(out.data() + offset, data, bytes);
          filled[piece.file] += bytes;
        }
        return true;
      });
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto out = wanted[i].bytes;
    found[i] = !out.empty() && filled[i] == out.size() &&
               state.parts.fingerprinter->fingerprint(out) == wanted[i].fingerprint;
  }
}

}  // namespace varve::version
