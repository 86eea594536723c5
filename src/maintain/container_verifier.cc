// SPDX-License-Identifier: Apache-2.0
#include "maintain/container_verifier.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/system_error.h"
#include "io/file_system.h"

namespace varve::maintain {

namespace {

std::vector<base::IdRun> chunks_of(const format::ContainerHeader& header,
                                   const format::FrameEntry& frame) {
  std::vector<base::IdRun> ids;
  for (std::uint32_t i = 0; i < frame.chunk_count; ++i) {
    ids.push_back({header.chunks[frame.first_chunk + i].id, 1});
  }
  return ids;
}

void verify_chunks(const format::ContainerHeader& header, const format::FrameEntry& frame,
                   std::span<const std::byte> raw, const format::Fingerprinter& fingerprinter,
                   ContainerVerdict& verdict) {
  ContainerVerdict::Fault fault;
  for (std::uint32_t i = 0; i < frame.chunk_count; ++i) {
    const auto& chunk = header.chunks[frame.first_chunk + i];
    const auto bytes = raw.subspan(chunk.frame_offset, chunk.raw_bytes);
    if (fingerprinter.fingerprint(bytes) == chunk.fingerprint) continue;
    fault.chunks.push_back({chunk.id, 1});
  }
  if (fault.chunks.empty()) return;
  fault.what =
      fmt::format("frame at data offset {}: a chunk does not match its SHA-256", frame.offset);
  verdict.faults.push_back(std::move(fault));
}

// Verifies the padding of a container, which `whole` has behind the data. A later request for the
// padding alone would bring a distant container again. Header, frames and padding are all bytes of
// a sealed container. The header's tag covers the outer checksum, so a comparison of the checksum
// would add nothing.
void verify_padding(const format::FrameCodec& codec, store::SegmentReader& reader,
                    const format::ContainerRecord& record, const Result<store::DirectRead>& whole,
                    ContainerVerdict& verdict) {
  const auto verified = [&]() -> Result<void> {
    if (whole && whole->unread.find(record.data_bytes, whole->bytes.size()) == nullptr) {
      return codec.verify_padding(*verdict.header, whole->bytes.subspan(record.data_bytes));
    }
    VARVE_TRY_ASSIGN(const auto padding, reader.read_padding(record));
    return codec.verify_padding(*verdict.header, padding);
  }();
  if (!verified && verified.error().code() == ErrorCode::kUnavailable) {
    verdict.unavailable = verified.error();
  } else if (!verified) {
    verdict.faults.push_back(
        {verified.error().message(), {}, !base::is_damage(verified.error()), true});
  }
}

}  // namespace

ContainerVerdict verify_container(const format::DataCodecs& codecs, store::SegmentReader& reader,
                                  StoreId store_id, const format::ContainerRecord& record,
                                  VerifyLevel level) {
  VerifyMemory memory;
  return verify_container(codecs, reader, store_id, record, level, memory);
}

ContainerVerdict verify_container(const format::DataCodecs& codecs, store::SegmentReader& reader,
                                  StoreId store_id, const format::ContainerRecord& record,
                                  VerifyLevel level, VerifyMemory& memory) {
  ContainerVerdict verdict;
  verdict.bytes_read = record.header_bytes;
  auto read = reader.read_header(store_id, record);
  if (!read) {
    if (read.error().code() == ErrorCode::kUnavailable) verdict.unavailable = read.error();
    verdict.error = std::move(read).error();
    return verdict;
  }
  verdict.header = std::move(*read);
  if (level == VerifyLevel::kHeader) return verdict;
  const auto& header = *verdict.header;
  // Reads all data at once, with the padding. Frames beside an unreadable
  // place are judged as readers of versions read the frames: each frame by its own bytes.
  const auto bytes = static_cast<std::size_t>(record.end() - record.offset - record.header_bytes);
  const std::size_t room = io::direct_room(bytes);
  if (!memory.stored || memory.stored->size() < room) memory.stored.emplace(room);
  const auto whole = reader.read_direct_around(record, 0, bytes, memory.stored->span());
  if (!whole && whole.error().code() == ErrorCode::kUnavailable) {
    verdict.unavailable = whole.error();
    return verdict;
  }
  for (std::uint32_t i = 0; i < header.frames.size(); ++i) {
    const auto& frame = header.frames[i];
    memory.raw.resize(std::max<std::size_t>(memory.raw.size(), frame.raw_bytes));
    const auto raw = std::span(memory.raw).first(frame.raw_bytes);
    const auto decoded = [&]() -> Result<void> {
      if (!whole) return whole.error();
      if (const Error* const error =
              whole->unread.find(format::extent_begin(frame), frame.offset + frame.stored_bytes)) {
        return *error;
      }
      return format::decode_frame(
          codecs.frames(), header, i,
          whole->bytes.subspan(format::extent_begin(frame), format::extent_bytes(frame)), raw);
    }();
    verdict.bytes_read += frame.stored_bytes;
    if (!decoded) {
      verdict.faults.push_back(
          {fmt::format("frame at data offset {}: {}", frame.offset, decoded.error().message()),
           chunks_of(header, frame), !base::is_damage(decoded.error())});
    } else if (level == VerifyLevel::kChunks) {
      verify_chunks(header, frame, raw, codecs.fingerprinter(), verdict);
    }
  }
  verify_padding(codecs.frames(), reader, record, whole, verdict);
  return verdict;
}

}  // namespace varve::maintain
