// SPDX-License-Identifier: Apache-2.0
#include "restore/random_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "restore/chunk_resolver.h"

namespace varve::restore {
namespace {
// Who asks for less may well come back for its neighbours in the page cache.
constexpr std::size_t kOnceBytesMin = 32U << 10;
}  // namespace

Result<void> RandomReader::read(RandomRead what, std::span<std::byte> out, FileFrame& last) {
  while (!out.empty()) {
    VARVE_TRY_ASSIGN(const auto part,
                     what.locator->find(*what.source, *what.run, what.run_number, what.run_offset));
    const std::uint64_t left = part.offset + part.bytes - what.run_offset;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, out.size()));
    VARVE_TRY(read_part(what, part, out.first(n), last));
    what.run_offset += n;
    what.data_offset += n;
    out = out.subspan(n);
  }
  return {};
}

Result<void> RandomReader::read_part(const RandomRead& what, const RunPart& part,
                                     std::span<std::byte> out, FileFrame& last) {
  auto head_result = what.source->head(part.container);
  if (!head_result) {
    return std::move(head_result).error().with_context(fmt::format("container {}", part.container));
  }
  const format::ContainerHead& head = **head_result;
  const std::uint32_t end = part.index + part.count;
  const auto too_short = [&] {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("container {} holds less than it should", part.container));
  };
  if (end > head.chunks.size()) return too_short();

  std::uint64_t offset = part.offset;
  std::uint32_t chunk = part.index;
  while (chunk < end && offset + head.chunks[chunk].raw_bytes <= what.run_offset) {
    offset += head.chunks[chunk++].raw_bytes;
  }
  std::vector<Piece> pieces;
  std::size_t done = 0;
  std::size_t within = what.run_offset - offset;  // In the chunk.
  while (done < out.size()) {
    if (chunk >= end) return too_short();
    const format::ChunkEntry& entry = head.chunks[chunk];
    const format::FrameEntry& frame = head.frames[entry.frame];
    const std::uint32_t stop = std::min(frame.first_chunk + frame.chunk_count, end);
    for (std::uint32_t i = chunk; i < stop; ++i) {
      VARVE_TRY(verify_place(head, i, what.run->first.plus(part.chunk + (i - part.index))));
    }
    Piece piece;
    piece.frame = entry.frame;
    piece.frame_offset = entry.frame_offset + within;
    piece.part_begin = entry.frame_offset;
    piece.part_end = head.chunks[stop - 1].frame_offset + head.chunks[stop - 1].raw_bytes;
    piece.out = out.subspan(done, std::min(out.size() - done, piece.part_end - piece.frame_offset));
    piece.data_offset = what.data_offset + done;
    pieces.push_back(piece);
    done += piece.out.size();
    chunk = stop;
    within = 0;
  }
  return read_pieces(what, head, pieces, last);
}

/// The slice's stored bytes, somewhere in `room`. Of its raw bytes, `wanted` were asked for.
Result<std::span<const std::byte>> RandomReader::fetch(const RandomRead& what,
                                                       const format::ContainerHead& head,
                                                       Slice slice, std::size_t wanted,
                                                       std::span<std::byte> room) {
  std::size_t raw_bytes = 0;
  for (std::uint32_t frame = slice.first; frame <= slice.last; ++frame) {
    raw_bytes += head.frames[frame].raw_bytes;
  }
  if (wanted >= kOnceBytesMin && wanted * 2 >= raw_bytes) {
    return reader_->read_once(*what.source, head, slice, room);
  }
  const auto stored = room.first(slice_bytes(head, slice));
  VARVE_TRY(reader_->read(*what.source, head, slice, stored));
  return std::span<const std::byte>(stored);
}

Result<void> RandomReader::read_pieces(const RandomRead& what, const format::ContainerHead& head,
                                       std::span<const Piece> pieces, FileFrame& last) {
  const auto key_of = [&](std::uint32_t frame) {
    return FrameKey{what.version_key, head.number, frame, head.frames[frame].checksum};
  };
  const auto deliver = [&](const Piece& piece, std::shared_ptr<const Frame> frame) {
    std::memcpy(piece.out.data(), frame->bytes().data() + piece.frame_offset, piece.out.size());
    last.begin = piece.data_offset - (piece.frame_offset - piece.part_begin);
    last.end = last.begin + (piece.part_end - piece.part_begin);
    last.frame_offset = piece.part_begin;
    last.frame = std::move(frame);
  };
  for (std::size_t i = 0; i < pieces.size();) {
    if (auto frame = frames_.find(key_of(pieces[i].frame))) {
      deliver(pieces[i++], std::move(frame));
      continue;
    }
    // Neighbours come in one request. They follow each other, since a part has no gaps.
    Slice slice{pieces[i].frame, pieces[i].frame};
    std::size_t j = i + 1;
    while (j < pieces.size() &&
           slice_bytes(head, {slice.first, pieces[j].frame}) <= kSliceBytesMax) {
      slice.last = pieces[j++].frame;
    }
    std::size_t wanted = 0;
    for (std::size_t k = i; k < j; ++k) wanted += pieces[k].out.size();
    const std::size_t bytes = slice_bytes(head, slice);
    const std::size_t room = layout::room_for(bytes);
    const Buffer buffer = slices_->acquire(room);
    VARVE_TRY_ASSIGN(const auto stored, fetch(what, head, slice, wanted, buffer.first(room)));
    for (; i < j; ++i) {
      const Piece& piece = pieces[i];
      const std::size_t raw_bytes = head.frames[piece.frame].raw_bytes;
      if (piece.out.size() == raw_bytes) {
        VARVE_TRY(decode_slice_frame(head, slice, piece.frame, stored, piece.out));
        continue;  // All of it is delivered: it will hardly be asked for again.
      }
      auto frame = std::make_shared<Frame>(raw_bytes, frame_buffers_);
      VARVE_TRY(decode_slice_frame(head, slice, piece.frame, stored, frame->bytes()));
      frames_.insert(key_of(piece.frame), frame);
      deliver(piece, std::move(frame));
    }
  }
  return {};
}

}  // namespace varve::restore
