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

std::size_t bytes_in(const RunPart& part, const RandomRead& what, std::size_t bytes) {
  const std::uint64_t left = part.offset + part.bytes - what.run_offset;
  return static_cast<std::size_t>(std::min<std::uint64_t>(left, bytes));
}

FrameKey key_of(const RandomRead& what, const format::ContainerHead& head, std::uint32_t frame) {
  return {what.version_key, head.number, frame, head.frames[frame].checksum};
}

}  // namespace

Result<void> RandomReader::read(RandomRead what, std::span<std::byte> out, FileFrame& last) {
  while (!out.empty()) {
    VARVE_TRY_ASSIGN(const auto part,
                     what.locator->find(*what.source, *what.run, what.run_number, what.run_offset));
    const auto n = bytes_in(part, what, out.size());
    VARVE_TRY_ASSIGN(const Head head, head_of(what, part));
    VARVE_TRY_ASSIGN(const auto pieces, plan(what, part, *head, out.first(n)));
    VARVE_TRY(read_pieces(what, *head, pieces, last));
    what.run_offset += n;
    what.data_offset += n;
    out = out.subspan(n);
  }
  return {};
}

void RandomReader::announce(RandomRead what, std::span<std::byte> out, Announce containers) {
  bool is_told = containers == Announce::kAll;
  while (!out.empty()) {
    // What is wrong with any of it, reading it will tell.
    const auto part = what.locator->find(*what.source, *what.run, what.run_number, what.run_offset);
    if (!part) return;
    const std::size_t n = bytes_in(*part, what, out.size());
    if (std::exchange(is_told, true)) announce_part(what, *part, out.first(n));
    what.run_offset += n;
    what.data_offset += n;
    out = out.subspan(n);
  }
}

void RandomReader::announce_part(const RandomRead& what, const RunPart& part,
                                 std::span<std::byte> out) {
  const auto head = head_of(what, part);
  if (!head) return;
  const auto pieces = plan(what, part, **head, out);
  if (!pieces) return;
  const auto is_missing = [&](const Piece& piece) {
    return !frames_.find(key_of(what, **head, piece.frame));
  };
  const auto first = std::ranges::find_if(*pieces, is_missing);
  if (first == pieces->end()) return;
  const Slice slice{first->frame, pieces->back().frame};
  what.source->will_read_data(part.container, (*head)->frames[slice.first].offset,
                              slice_bytes(**head, slice));
}

Result<RandomReader::Head> RandomReader::head_of(const RandomRead& what, const RunPart& part) {
  auto head = what.source->head(part.container);
  if (head) return head;
  return std::move(head).error().with_context(fmt::format("container {}", part.container));
}

/// What is wanted of each frame, for at most the bytes that the part has.
Result<std::vector<RandomReader::Piece>> RandomReader::plan(const RandomRead& what,
                                                            const RunPart& part,
                                                            const format::ContainerHead& head,
                                                            std::span<std::byte> out) {
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
  return pieces;
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
  const auto deliver = [&](const Piece& piece, std::shared_ptr<const Frame> frame) {
    std::memcpy(piece.out.data(), frame->bytes().data() + piece.frame_offset, piece.out.size());
    last.begin = piece.data_offset - (piece.frame_offset - piece.part_begin);
    last.end = last.begin + (piece.part_end - piece.part_begin);
    last.frame_offset = piece.part_begin;
    last.frame = std::move(frame);
  };
  for (std::size_t i = 0; i < pieces.size();) {
    if (auto frame = frames_.find(key_of(what, head, pieces[i].frame))) {
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
      frames_.insert(key_of(what, head, piece.frame), frame);
      deliver(piece, std::move(frame));
    }
  }
  return {};
}

}  // namespace varve::restore
