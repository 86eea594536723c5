// SPDX-License-Identifier: Apache-2.0
#include "restore/random_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "restore/chunk_resolver.h"

namespace varve::restore {
namespace {
// A reader of fewer bytes is likely to read the neighbouring bytes next, and finds the neighbours
// in the page cache.
constexpr std::size_t kOnceBytesMin = 32U << 10;

FrameKey key_of(const RandomReader::Part& part, std::uint32_t frame) {
  return {part.what.version_key, part.header->number, frame, part.header->frames[frame].checksum};
}

// Announces the chunks of the part that a read of `bytes` needs, assuming chunks of equal length. A
// distant store is then asked for the chunks together with the header.
void announce_chunks(const RunPart& found, const RandomRead& what, std::size_t bytes) {
  if (!what.source->answers_later() || found.bytes == 0) return;
  const auto chunk_at = [&](std::uint64_t offset) {
    return static_cast<std::uint32_t>(offset * found.count / found.bytes);
  };
  const std::uint64_t begin = what.run_offset - found.offset;
  const std::uint32_t first = chunk_at(begin);
  what.source->will_read_chunks(found.container, found.index + first,
                                chunk_at(begin + bytes) - first + 1);
}

}  // namespace

Result<void> RandomReader::plan(RandomRead what, std::span<std::byte> out,
                                std::vector<Part>& parts) {
  while (!out.empty()) {
    VARVE_TRY_ASSIGN(const auto found,
                     what.locator->find(*what.source, *what.run, what.run_number, what.run_offset));
    const std::uint64_t left = found.offset + found.bytes - what.run_offset;
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, out.size()));
    announce_chunks(found, what, n);
    auto header = what.source->header(found.container);
    if (!header) {
      return std::move(header).error().with_context(fmt::format("container {}", found.container));
    }
    Part part{what, std::move(*header), {}};
    VARVE_TRY(plan_part(found, out.first(n), part));
    parts.push_back(std::move(part));
    what.run_offset += n;
    what.data_offset += n;
    out = out.subspan(n);
  }
  return {};
}

Result<void> RandomReader::read(std::span<const Part> parts, FileFrame& last) {
  std::vector<bool> is_announced(parts.size());
  for (std::size_t i = 1; i < parts.size(); ++i) is_announced[i] = announce(parts[i]);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    VARVE_TRY(read_part(parts[i], is_announced[i], last));
  }
  return {};
}

/// Announces the part to the kernel. Returns false if all frames of the part are cached.
bool RandomReader::announce(const Part& part) {
  const auto first = std::ranges::find_if(
      part.pieces, [&](const Piece& piece) { return !frames_.find(key_of(part, piece.frame)); });
  if (first == part.pieces.end()) return false;
  const Slice slice{first->frame, part.pieces.back().frame};
  SliceReader::announce(*part.what.source, *part.header, slice);
  return true;
}

/// Adds the wanted bytes of each frame to `part`. `out` must not be longer than `found`.
Result<void> RandomReader::plan_part(const RunPart& found, std::span<std::byte> out, Part& part) {
  const format::ContainerHeader& header = *part.header;
  const RandomRead& what = part.what;
  const std::uint32_t end = found.index + found.count;
  const auto too_short = [&] {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("container {} holds less than it should", found.container));
  };
  if (end > header.chunks.size()) return too_short();
  std::uint64_t bytes = 0;
  for (std::uint32_t i = found.index; i < end; ++i) bytes += header.chunks[i].raw_bytes;
  if (bytes != found.bytes) {
    return Error(ErrorCode::kCorrupt, fmt::format("container {} has chunks of other lengths than "
                                                  "the file's recipe says",
                                                  found.container));
  }

  std::uint64_t offset = found.offset;
  std::uint32_t chunk = found.index;
  while (chunk < end && offset + header.chunks[chunk].raw_bytes <= what.run_offset) {
    offset += header.chunks[chunk++].raw_bytes;
  }
  std::size_t done = 0;
  std::size_t within = what.run_offset - offset;  // Offset in the chunk.
  while (done < out.size()) {
    if (chunk >= end) return too_short();
    const format::ChunkEntry& entry = header.chunks[chunk];
    const format::FrameEntry& frame = header.frames[entry.frame];
    const std::uint32_t stop = std::min(frame.first_chunk + frame.chunk_count, end);
    for (std::uint32_t i = chunk; i < stop; ++i) {
      VARVE_TRY(verify_place(header, i, found.stored.plus(i - found.index)));
    }
    Piece piece;
    piece.frame = entry.frame;
    piece.frame_offset = entry.frame_offset + within;
    piece.part_begin = entry.frame_offset;
    piece.part_end = header.chunks[stop - 1].frame_offset + header.chunks[stop - 1].raw_bytes;
    piece.out = out.subspan(done, std::min(out.size() - done, piece.part_end - piece.frame_offset));
    piece.data_offset = what.data_offset + done;
    part.pieces.push_back(piece);
    done += piece.out.size();
    chunk = stop;
    within = 0;
  }
  return {};
}

/// Returns the slice's stored bytes, perhaps in `room`. `wanted`: number of the slice's raw bytes
/// that the caller wants.
Result<SliceBytes> RandomReader::fetch(const Part& part, Slice slice, std::size_t wanted,
                                       bool is_announced, std::span<std::byte> room) {
  const format::ContainerHeader& header = *part.header;
  SealedWindows::Plan plan;
  plan.is_random = part.what.is_jump;
  std::size_t raw_bytes = 0;
  for (std::uint32_t frame = slice.first; frame <= slice.last; ++frame) {
    raw_bytes += header.frames[frame].raw_bytes;
  }
  bool wants_most = wanted * 2 >= raw_bytes;
  if (header.seal) {
    // The request reads whole windows; the page cache keeps the unused bytes for the next reads.
    SealedWindows::Set windows;
    SealedWindows::add_windows(header, slice, windows);
    wants_most = wanted * 2 > windows.count() * SealedWindows::kWindowBytes;
  }
  if (!is_announced && wanted >= kOnceBytesMin && wants_most) {
    return reader_->read_once(*part.what.source, header, slice, room, plan);
  }
  return reader_->read(*part.what.source, header, slice, room, plan);
}

Result<void> RandomReader::read_part(const Part& part, bool is_announced, FileFrame& last) {
  const format::ContainerHeader& header = *part.header;
  const auto& pieces = part.pieces;
  const auto deliver = [&](const Piece& piece, std::shared_ptr<const Frame> frame) {
    std::memcpy(piece.out.data(), frame->bytes().data() + piece.frame_offset, piece.out.size());
    last.begin = piece.data_offset - (piece.frame_offset - piece.part_begin);
    last.end = last.begin + (piece.part_end - piece.part_begin);
    last.frame_offset = piece.part_begin;
    last.frame = std::move(frame);
  };
  for (std::size_t i = 0; i < pieces.size();) {
    if (auto frame = frames_.find(key_of(part, pieces[i].frame))) {
      metrics_.frame_cache_hits.add();
      deliver(pieces[i++], std::move(frame));
      continue;
    }
    // Fetches neighbouring frames in one request. A part has no gaps, so its frames are
    // consecutive.
    Slice slice{pieces[i].frame, pieces[i].frame};
    std::size_t j = i + 1;
    while (j < pieces.size() &&
           slice_bytes(header, {slice.first, pieces[j].frame}) <= kSliceBytesMax) {
      slice.last = pieces[j++].frame;
    }
    metrics_.frame_cache_misses.add(j - i);
    std::size_t wanted = 0;
    for (std::size_t k = i; k < j; ++k) wanted += pieces[k].out.size();
    const std::size_t bytes = slice_bytes(header, slice);
    const std::size_t room = layout::room_for(bytes);
    const Buffer buffer = slices_->acquire(room);
    VARVE_TRY_ASSIGN(const auto stored,
                     fetch(part, slice, wanted, is_announced, buffer.first(room)));
    for (; i < j; ++i) {
      const Piece& piece = pieces[i];
      const auto decode = [&](std::span<std::byte> out) {
        return reader_->decode(*part.what.source, header, slice, piece.frame, stored, out);
      };
      const std::size_t raw_bytes = header.frames[piece.frame].raw_bytes;
      if (piece.out.size() == raw_bytes) {
        VARVE_TRY(decode(piece.out));
        // The frame is delivered completely and will hardly be wanted again, so the frame is not
        // cached.
        continue;
      }
      auto frame = std::make_shared<Frame>(raw_bytes, frame_buffers_);
      VARVE_TRY(decode(frame->bytes()));
      frames_.insert(key_of(part, piece.frame), frame);
      deliver(piece, std::move(frame));
    }
  }
  return {};
}

}  // namespace varve::restore
