// SPDX-License-Identifier: Apache-2.0
#include "maintain/container_verifier.h"

#include <fmt/format.h>

#include <span>

#include "format/fingerprinter.h"

namespace varve::maintain {

namespace {

std::vector<base::IdRun> chunks_of(const format::ContainerHead& head,
                                   const format::FrameEntry& frame) {
  std::vector<base::IdRun> ids;
  for (std::uint32_t i = 0; i < frame.chunk_count; ++i) {
    ids.push_back({head.chunks[frame.first_chunk + i].id, 1});
  }
  return ids;
}

void verify_chunks(const format::ContainerHead& head, const format::FrameEntry& frame,
                   std::span<const std::byte> raw, format::Fingerprinter& fingerprinter,
                   ContainerVerdict& verdict) {
  ContainerVerdict::Fault fault;
  for (std::uint32_t i = 0; i < frame.chunk_count; ++i) {
    const auto& chunk = head.chunks[frame.first_chunk + i];
    const auto bytes = raw.subspan(chunk.frame_offset, chunk.raw_bytes);
    if (fingerprinter.fingerprint(bytes) == chunk.fingerprint) continue;
    fault.chunks.push_back({chunk.id, 1});
  }
  if (fault.chunks.empty()) return;
  fault.what =
      fmt::format("frame at data offset {}: a chunk does not match its SHA-256", frame.offset);
  verdict.faults.push_back(std::move(fault));
}

}  // namespace

ContainerVerdict verify_container(store::SegmentReader& reader, SeriesId series,
                                  const store::ContainerRecord& record, VerifyLevel level) {
  ContainerVerdict verdict;
  verdict.bytes_read = record.head_bytes;
  auto read = reader.read_head(series, record);
  if (!read) {
    verdict.error = std::move(read).error();
    return verdict;
  }
  verdict.head = std::move(*read);
  if (level == VerifyLevel::kHead) return verdict;
  const auto& head = *verdict.head;
  // At once, if that works: where a file is cut short, what comes before the cut can be read.
  std::vector<std::byte> data(record.data_bytes);
  const bool whole = reader.read_data(record, 0, data).has_value();
  std::vector<std::byte> raw;
  format::Fingerprinter fingerprinter;
  for (const auto& frame : head.frames) {
    const auto stored = std::span(data).subspan(frame.offset, frame.stored_bytes);
    raw.resize(frame.raw_bytes);
    auto decoded = whole ? Result<void>() : reader.read_data(record, frame.offset, stored);
    if (decoded) decoded = format::decode_frame(frame, stored, raw);
    verdict.bytes_read += frame.stored_bytes;
    if (!decoded) {
      verdict.faults.push_back(
          {fmt::format("frame at data offset {}: {}", frame.offset, decoded.error().message()),
           chunks_of(head, frame)});
    } else if (level == VerifyLevel::kChunks) {
      verify_chunks(head, frame, raw, fingerprinter, verdict);
    }
  }
  if (auto padding = reader.verify_padding(record); !padding) {
    verdict.faults.push_back({padding.error().message(), {}});
  }
  return verdict;
}

}  // namespace varve::maintain
