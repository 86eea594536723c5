// SPDX-License-Identifier: Apache-2.0
// Requests the data of an arranging step before waiting for the first byte.
#include <algorithm>
#include <set>
#include <utility>

#include "layout/chunk_mover.h"

namespace varve::layout {

namespace {
// Containers with headers requested together.
constexpr std::size_t kContainersAhead = 64;
// Shortest gap that divides a request.
constexpr std::uint64_t kAheadGapBytesMax = 64U << 10;
}  // namespace

void ChunkMover::announce_whole() {
  std::map<ContainerNumber, std::uint64_t> wanted;  // Raw bytes.
  for (const auto& piece : pieces_) {
    wanted[piece.record.container] +=
        piece.record.raw_bytes * piece.count / std::max(piece.record.count, 1U);
  }
  for (const auto& [number, bytes] : wanted) {
    const auto& record = containers_.at(number);
    if (bytes * 2 >= record.raw_bytes) store_.chunks.reader().will_read_all(record);
  }
}

// The following read reports the error.
std::size_t ChunkMover::read_ahead(Pieces sorted) {
  auto& reader = store_.chunks.reader();
  headers_.clear();
  std::vector<std::pair<ContainerNumber, Pieces>> parts;
  std::size_t at = 0;
  while (at < sorted.size() && parts.size() < kContainersAhead) {
    const std::size_t first = at;
    const ContainerNumber container = sorted[first].record.container;
    while (at < sorted.size() && sorted[at].record.container == container) ++at;
    parts.emplace_back(container, sorted.subspan(first, at - first));
  }
  for (const auto& part : parts) reader.will_read_header(containers_.at(part.first));
  for (const auto& [container, pieces] : parts) {
    const auto& record = containers_.at(container);
    auto header = reader.read_header(store_.chunks.id(), record);
    if (!header) continue;
    announce_frames(record, *header, pieces);
    headers_.emplace(container, *std::move(header));
  }
  return at;
}

void ChunkMover::announce_frames(const format::ContainerRecord& record,
                                 const format::ContainerHeader& header, Pieces pieces) {
  std::set<std::uint32_t> frames;
  for (const auto& piece : pieces) {
    const std::uint64_t begin = std::uint64_t{piece.record.index} + piece.skip;
    const auto end = std::min<std::uint64_t>(begin + piece.count, header.chunks.size());
    for (auto i = begin; i < end; ++i) frames.insert(header.chunks[i].frame);
  }
  for (auto it = frames.begin(); it != frames.end();) {
    std::uint64_t from = format::extent_begin(header.frames[*it]);
    std::uint64_t to = header.frames[*it].offset;
    for (; it != frames.end() && header.frames[*it].offset <= to + kAheadGapBytesMax; ++it) {
      from = std::min<std::uint64_t>(from, format::extent_begin(header.frames[*it]));
      to = header.frames[*it].offset + header.frames[*it].stored_bytes;
    }
    store_.chunks.reader().will_read_data(record, static_cast<std::uint32_t>(from), to - from);
  }
}

}  // namespace varve::layout
