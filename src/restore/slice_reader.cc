// SPDX-License-Identifier: Apache-2.0
#include "restore/slice_reader.h"

#include <fmt/core.h>

#include <utility>

#include "base/system_error.h"
#include "format/raw_frame.h"

namespace varve::restore {

namespace {

Error explain(Error error, const format::ContainerHeader& header, Slice slice) {
  return std::move(error).with_context(
      slice.first == slice.last
          ? fmt::format("container {}, frame {}", header.number, slice.first)
          : fmt::format("container {}, frames {} to {}", header.number, slice.first, slice.last));
}

}  // namespace

void SliceReader::count(std::size_t bytes, std::uint64_t requests) {
  metrics_.requests.add(requests);
  metrics_.read_bytes.add(bytes);
}

Result<SliceBytes> SliceReader::read_windows(layout::ChunkSource& source,
                                             const format::ContainerHeader& header, Slice slice,
                                             std::span<std::byte> room, bool once,
                                             const SealedWindows::Plan& plan) {
  SealedWindows::Cost cost;
  auto read = windows_.read(source, header, slice, room, once, plan, cost);
  if (!read) return explain(std::move(read).error(), header, slice);
  count(cost.bytes, cost.requests);
  return read;
}

Result<SliceBytes> SliceReader::read(layout::ChunkSource& source,
                                     const format::ContainerHeader& header, Slice slice,
                                     std::span<std::byte> room, const SealedWindows::Plan& plan) {
  if (header.seal) return read_windows(source, header, slice, room, false, plan);
  const auto out = room.first(slice_bytes(header, slice));
  count(out.size());
  auto result = source.read_data(header.number, slice_begin(header, slice), out);
  if (!result) return read_around(source, header, slice, out, std::move(result).error());
  return SliceBytes{out};
}

/// Reads a slice after `error`, the error of a read with unreadable bytes.
Result<SliceBytes> SliceReader::read_around(layout::ChunkSource& source,
                                            const format::ContainerHeader& header, Slice slice,
                                            std::span<std::byte> out, Error error) {
  if (!base::is_damage(error)) return explain(std::move(error), header, slice);
  count(out.size());
  auto unread = source.read_around(header.number, slice_begin(header, slice), out);
  if (!unread) return explain(std::move(unread).error(), header, slice);
  return SliceBytes{out, nullptr, std::move(*unread)};
}

Result<SliceBytes> SliceReader::read_once(layout::ChunkSource& source,
                                          const format::ContainerHeader& header, Slice slice,
                                          std::span<std::byte> room,
                                          const SealedWindows::Plan& plan) {
  const bool is_whole = slice.first == 0 && slice.last + 1 == header.frames.size();
  if (header.seal && (!is_whole || windows_.has_part_of(header))) {
    return read_windows(source, header, slice, room, true, plan);
  }
  const std::size_t bytes = slice_bytes(header, slice);
  count(bytes);
  auto result = source.read_once(header.number, slice_begin(header, slice), bytes, room);
  if (!result) {
    return read_around(source, header, slice, room.first(bytes), std::move(result).error());
  }
  return SliceBytes{*result};
}

void SliceReader::announce(layout::ChunkSource& source, const format::ContainerHeader& header,
                           Slice slice) {
  // The storage would see the spread of the pieces of a file, beside the windows.
  if (header.seal) return;
  source.will_read_data(header.number, slice_begin(header, slice), slice_bytes(header, slice));
}

void SliceReader::read_many(layout::ChunkSource& source, const std::vector<Read>& reads,
                            const layout::DataCompletion& done) {
  std::vector<layout::DataRead> wanted;
  for (const auto& [header, slice, room, lent] : reads) {
    const std::size_t bytes = slice_bytes(*header, slice);
    count(bytes);
    wanted.push_back({header->number, slice_begin(*header, slice), bytes, room, lent});
  }
  source.read_many(wanted, done);
}

Result<void> SliceReader::decode(layout::ChunkSource& source, const format::ContainerHeader& header,
                                 Slice slice, std::uint32_t frame, const SliceBytes& stored,
                                 std::span<std::byte> out) {
  auto decoded = decode_once(source.codec(), header, slice, frame, stored, out);
  if (!decoded && drop(source, header)) {
    const Slice alone{frame, frame};
    std::vector<std::byte> room(slice_bytes(header, alone));
    VARVE_TRY_ASSIGN(const auto read, this->read(source, header, alone, room));
    decoded = decode_once(source.codec(), header, alone, frame, read, out);
    if (!decoded) static_cast<void>(drop(source, header));
  }
  if (!decoded) source.note_damage(header, frame, decoded.error());
  return decoded;
}

std::span<const std::byte> find_raw_frame(const format::ContainerHeader& header, Slice slice,
                                          std::uint32_t frame, const SliceBytes& stored) {
  const format::FrameEntry& entry = header.frames[frame];
  if (!format::is_raw_frame(header, entry)) return {};
  const std::size_t at = entry.offset - slice_begin(header, slice);
  if (stored.unread.find(at, at + entry.stored_bytes) != nullptr) return {};
  const auto bytes = stored.bytes.subspan(at, entry.stored_bytes);
  return format::verify_plain_frame(entry, bytes) ? bytes : std::span<const std::byte>();
}

Result<void> SliceReader::decode_once(const format::FrameCodec& codec,
                                      const format::ContainerHeader& header, Slice slice,
                                      std::uint32_t frame, const SliceBytes& stored,
                                      std::span<std::byte> out) {
  const format::FrameEntry& entry = header.frames[frame];
  const std::size_t at = format::extent_begin(entry) - slice_begin(header, slice);
  const std::size_t bytes = format::extent_bytes(entry);
  const Slice alone{frame, frame};
  if (const Error* const error = stored.unread.find(at, at + bytes)) {
    return explain(*error, header, alone);
  }
  const auto decoded =
      format::decode_frame(codec, header, frame, stored.bytes.subspan(at, bytes), out, prefixes_);
  if (!decoded) return explain(decoded.error(), header, alone);
  metrics_.decoded_bytes.add(*decoded);
  return {};
}

}  // namespace varve::restore
