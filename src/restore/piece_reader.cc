// SPDX-License-Identifier: Apache-2.0
#include "restore/piece_reader.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "restore/chunk_resolver.h"
#include "restore/run_locator.h"

namespace varve::restore {
namespace {

// Maximum of containers requested in advance from a distant store: as a whole or for the header,
// and for slices, which need the header first.
constexpr std::size_t kContainersAhead = 64;
constexpr std::size_t kSlicesAhead = 16;

}  // namespace

Result<void> locate_pieces(layout::ChunkSource& source, const format::Recipe& recipe,
                           std::uint64_t offset, const VersionReader::PieceVisitor& visit) {
  RunLocator locator;
  std::uint64_t run_begin = 0;
  std::optional<ContainerNumber> container;
  std::uint64_t place = 0;
  for (std::size_t number = 0; number < recipe.runs.size(); ++number) {
    const format::RecipeRun& run = recipe.runs[number];
    std::uint64_t at = std::min(offset > run_begin ? offset - run_begin : 0, run.bytes);
    while (!run.is_hole() && at < run.bytes) {
      VARVE_TRY_ASSIGN(const RunPart part, locator.find(source, run, number, at));
      if (part.bytes > UINT32_MAX) {
        return Error(ErrorCode::kCorrupt, "a piece is larger than a container can be");
      }
      if (container != part.container) {
        VARVE_TRY_ASSIGN(place, source.place_of(part.container));
        container = part.container;
      }
      StoredPiece piece;
      piece.place = place;
      piece.offset = run_begin + part.offset;
      piece.first = part.stored;
      piece.count = part.count;
      piece.bytes = static_cast<std::uint32_t>(part.bytes);
      piece.container = static_cast<std::uint32_t>(part.container);
      piece.index = part.index;
      if (!visit(piece)) return {};
      at = part.offset + part.bytes;
    }
    run_begin += run.bytes;
  }
  return {};
}

void PieceReader::read(std::span<const StoredPiece> pieces, const VersionReader::PieceTaker& take) {
  const bool is_distant = source_.answers_later();
  Pieces unannounced = pieces;
  Pieces unsliced = pieces;
  std::size_t announced = 0;  // Containers that are announced and not read yet.
  std::size_t sliced = 0;
  while (!pieces.empty()) {
    if (is_distant) {
      for (; announced < kContainersAhead && !unannounced.empty(); ++announced) {
        announce(take_container(unannounced));
      }
      for (; sliced < kSlicesAhead && !unsliced.empty(); ++sliced) {
        announce_slices(take_container(unsliced));
      }
      --announced;
      --sliced;
    }
    if (!read_container(take_container(pieces), take)) return;
  }
}

PieceReader::Pieces PieceReader::take_container(Pieces& pieces) {
  std::size_t n = 1;
  while (n < pieces.size() && pieces[n].container == pieces[0].container) ++n;
  const auto taken = pieces.first(n);
  pieces = pieces.subspan(n);
  return taken;
}

bool PieceReader::wants_most(Pieces pieces) {
  std::uint64_t wanted = 0;
  for (const auto& piece : pieces) wanted += piece.count;
  const auto run = source_.locate(pieces.front().first);
  return run && wanted * kWholeContainerShare >= run->count;
}

/// Requests the container's header from a distant store, or the whole container if most is wanted.
void PieceReader::announce(Pieces pieces) {
  const auto container = static_cast<ContainerNumber>(pieces.front().container);
  if (wants_most(pieces)) {
    source_.will_read_all(container);
  } else {
    source_.will_read_header(container);
  }
}

/// Requests the slices of a container if little of the container is wanted. Waits for the header.
void PieceReader::announce_slices(Pieces pieces) {
  if (wants_most(pieces)) return;
  const auto header = source_.header(static_cast<ContainerNumber>(pieces.front().container));
  if (!header) return;
  std::optional<Slice> slice;
  for (const auto& piece : pieces) {
    const std::size_t end = std::size_t{piece.index} + piece.count;
    if (end > (*header)->chunks.size() || piece.count == 0) continue;
    const Slice next{(*header)->chunks[piece.index].frame, (*header)->chunks[end - 1].frame};
    if (slice && next.first <= slice->last + 1) {
      slice->last = std::max(slice->last, next.last);
      continue;
    }
    if (slice) SliceReader::announce(source_, **header, *slice);
    slice = next;
  }
  if (slice) SliceReader::announce(source_, **header, *slice);
}

bool PieceReader::read_container(std::span<const StoredPiece> pieces,
                                 const VersionReader::PieceTaker& take) {
  const auto header = source_.header(static_cast<ContainerNumber>(pieces.front().container));
  parts_.clear();
  for (const StoredPiece& piece : pieces) {
    if (header && add_parts(**header, piece)) continue;
    if (!take(piece, piece.offset, piece.bytes, nullptr)) return false;
  }
  std::ranges::sort(parts_, {}, [](const Part& part) {
    return std::tie(part.frame, part.frame_offset, part.piece, part.offset);
  });
  plan_ = {};
  for (const Part& part : parts_) {
    SealedWindows::add_windows(**header, {part.frame, part.frame}, plan_.wanted);
  }
  const ReadCosts costs = reader_.costs();
  for (Parts rest = parts_; !rest.empty();) {
    // Extends the slice while the slice fits one request and has no gap that is cheaper to skip.
    const auto& frames = (*header)->frames;
    std::size_t n = 1;
    while (n < rest.size() &&
           slice_bytes(**header, {rest[0].frame, rest[n].frame}) <= costs.request_bytes_max &&
           (rest[n].frame == rest[n - 1].frame ||
            frames[rest[n].frame].offset - frame_end(frames[rest[n - 1].frame]) <=
                costs.gap_bytes_max)) {
      ++n;
    }
    // A single frame may be longer than a request; frames cannot be divided.
    while (n < rest.size() && rest[n].frame == rest[n - 1].frame) ++n;
    if (!read_slice(**header, rest.first(n), take)) return false;
    rest = rest.subspan(n);
  }
  return true;
}

/// Adds the parts of a piece. Returns false, without effect, if the container does not match the
/// piece.
bool PieceReader::add_parts(const format::ContainerHeader& header, const StoredPiece& piece) {
  const std::size_t end = std::size_t{piece.index} + piece.count;
  if (end > header.chunks.size()) return false;
  const std::size_t before = parts_.size();
  std::uint64_t bytes = 0;
  for (std::uint32_t i = piece.index; i < end; ++i) {
    const format::ChunkEntry& chunk = header.chunks[i];
    if (!verify_place(header, i, piece.first.plus(i - piece.index))) {
      parts_.resize(before);
      return false;
    }
    // Consecutive chunks of the same frame are also consecutive in the frame.
    if (parts_.size() > before && parts_.back().frame == chunk.frame) {
      parts_.back().bytes += chunk.raw_bytes;
    } else {
      parts_.push_back(
          {chunk.frame, chunk.frame_offset, chunk.raw_bytes, &piece, piece.offset + bytes});
    }
    bytes += chunk.raw_bytes;
  }
  if (bytes == piece.bytes) return true;
  parts_.resize(before);
  return false;
}

bool PieceReader::read_slice(const format::ContainerHeader& header, Parts parts,
                             const VersionReader::PieceTaker& take) {
  const Slice slice{parts.front().frame, parts.back().frame};
  stored_.resize(slice_bytes(header, slice));
  const auto read = reader_.read(source_, header, slice, stored_, plan_);
  while (!parts.empty()) {
    std::size_t n = 1;
    while (n < parts.size() && parts[n].frame == parts[0].frame) ++n;
    const Parts of_frame = parts.first(n);
    parts = parts.subspan(n);
    if (!read_frame(header, slice, read ? &*read : nullptr, of_frame, take)) return false;
  }
  return true;
}

/// Passes on the parts of a frame, as unread if `stored` is null or damaged.
bool PieceReader::read_frame(const format::ContainerHeader& header, Slice slice,
                             const SliceBytes* stored, Parts parts,
                             const VersionReader::PieceTaker& take) {
  const std::uint32_t frame = parts[0].frame;
  raw_.resize(header.frames[frame].raw_bytes);
  const bool sound =
      stored != nullptr && reader_.decode(source_, header, slice, frame, *stored, raw_).has_value();
  return std::ranges::all_of(parts, [&](const Part& part) {
    if (sound) metrics_.delivered_bytes.add(part.bytes);
    return take(*part.piece, part.offset, part.bytes,
                sound ? raw_.data() + part.frame_offset : nullptr);
  });
}

}  // namespace varve::restore
