// SPDX-License-Identifier: Apache-2.0
#include "format/container.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"

namespace varve::format {

namespace {

using base::ByteReader;
using base::ByteWriter;
using base::IdRun;

constexpr std::uint16_t kContainerFormat = 1;
constexpr std::uint32_t kFeatureCompact = 1;
constexpr std::uint32_t kFeaturesKnown = kFeatureCompact;
constexpr std::size_t kFrameEntryBytes = 24;
constexpr std::size_t kIdRunBytes = 12;
constexpr std::size_t kChunkEntryBytes = 32 + 3;
constexpr std::size_t kHeaderZeroBytes = 64;
constexpr std::size_t kHeaderChecksumOffset = kContainerHeaderBytes - sizeof(std::uint64_t);
static_assert(sizeof(Fingerprint) == 32);

// The header's fields, in their order on disk.
struct Header {
  std::uint32_t magic = kContainerMagic;
  std::uint16_t format = kContainerFormat;
  std::uint16_t zero = 0;
  std::uint32_t features = 0;
  std::uint32_t series = 0;
  std::uint32_t number = 0;
  std::uint32_t frames = 0;
  std::uint32_t chunks = 0;
  std::uint32_t id_runs = 0;
  std::uint32_t head_bytes = 0;
  std::uint32_t data_bytes = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t tables_checksum = 0;  // Of everything in the head behind the header.
};

Error damaged(const std::string& what) { return {ErrorCode::kCorrupt, "container head: " + what}; }

std::string encode_header(const Header& header) {
  std::string out;
  out.reserve(kContainerHeaderBytes);
  ByteWriter w(out);
  w.u32(header.magic);
  w.u16(header.format);
  w.u16(header.zero);
  w.u32(header.features);
  w.u32(header.series);
  w.u32(header.number);
  w.u32(header.frames);
  w.u32(header.chunks);
  w.u32(header.id_runs);
  w.u32(header.head_bytes);
  w.u32(header.data_bytes);
  w.u64(header.raw_bytes);
  w.u64(header.tables_checksum);
  out.append(kHeaderZeroBytes, '\0');
  VARVE_ASSERT(out.size() == kHeaderChecksumOffset);
  w.u64(checksum64(base::as_bytes(out)));
  return out;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// Reads and verifies the header alone: afterwards its counts and lengths agree.
Result<Header> decode_header(std::span<const std::byte> start) {
  if (start.size() < kContainerHeaderBytes) return damaged("it is cut short");
  const auto bytes = start.first(kContainerHeaderBytes);
  ByteReader r(bytes);
  Header header;
  header.magic = r.u32();
  if (header.magic != kContainerMagic) return damaged("there is no container here");
  header.format = r.u16();
  header.zero = r.u16();
  header.features = r.u32();
  header.series = r.u32();
  header.number = r.u32();
  header.frames = r.u32();
  header.chunks = r.u32();
  header.id_runs = r.u32();
  header.head_bytes = r.u32();
  header.data_bytes = r.u32();
  header.raw_bytes = r.u64();
  header.tables_checksum = r.u64();
  const bool zeros = all_zero(r.bytes(kHeaderZeroBytes)) && header.zero == 0;
  if (r.u64() != checksum64(bytes.first(kHeaderChecksumOffset))) {
    return damaged("the header does not match its checksum");
  }
  if (header.format != kContainerFormat || (header.features & ~kFeaturesKnown) != 0) {
    return Error(ErrorCode::kUnsupported, "container head: written by a newer Varve (format " +
                                              std::to_string(header.format) + ", features " +
                                              std::to_string(header.features) +
                                              "); use that version or a later one");
  }
  if (!zeros) return damaged("reserved bytes are not zero");
  // No product below overflows: the counts have 32 bits and are multiplied in 64.
  const bool compact = (header.features & kFeatureCompact) != 0;
  if (header.head_bytes !=
          container_head_bytes(header.frames, header.chunks, header.id_runs, compact) ||
      header.head_bytes + padded_bytes(header.data_bytes, compact) > kContainerBytesMax) {
    return damaged("its lengths are impossible");
  }
  if (header.frames > header.chunks || header.id_runs > header.chunks ||
      (header.chunks != 0 && (header.frames == 0 || header.id_runs == 0)) ||
      header.data_bytes > header.raw_bytes ||
      header.raw_bytes > std::uint64_t{header.frames} * kFrameRawBytesMax) {
    return damaged("its counts are impossible");
  }
  return header;
}

std::vector<IdRun> runs_of(const std::vector<ChunkEntry>& chunks) {
  std::vector<IdRun> runs;
  for (const auto& chunk : chunks) {
    const bool follows = !runs.empty() && runs.back().first.plus(runs.back().count) == chunk.id &&
                         runs.back().first.birth() == chunk.id.birth();
    if (follows) {
      ++runs.back().count;
    } else {
      runs.push_back({chunk.id, 1});
    }
  }
  return runs;
}

bool is_codec(std::uint8_t codec) {
  return codec == static_cast<std::uint8_t>(Codec::kNone) ||
         codec == static_cast<std::uint8_t>(Codec::kZstd);
}

bool is_possible(const FrameEntry& frame) {
  if (frame.chunk_count == 0 || frame.stored_bytes == 0) return false;
  if (frame.raw_bytes > kFrameRawBytesMax || frame.chunk_count > frame.raw_bytes) return false;
  return frame.codec == Codec::kNone ? frame.stored_bytes == frame.raw_bytes
                                     : frame.stored_bytes < frame.raw_bytes;
}

Result<std::vector<FrameEntry>> decode_frames(ByteReader& r, const Header& header) {
  std::vector<FrameEntry> frames(header.frames);
  std::uint64_t chunks = 0;
  std::uint64_t stored = 0;
  std::uint64_t raw = 0;
  for (auto& frame : frames) {
    frame.chunk_count = r.u32();
    frame.stored_bytes = r.u32();
    frame.raw_bytes = r.u32();
    const std::uint8_t codec = r.u8();
    const bool zeros = all_zero(r.bytes(3));
    frame.checksum = r.u64();
    frame.codec = static_cast<Codec>(codec);
    if (!r.ok() || !is_codec(codec) || !zeros || !is_possible(frame)) {
      return damaged("a frame's entry is impossible");
    }
    frame.first_chunk = static_cast<std::uint32_t>(chunks);
    frame.offset = static_cast<std::uint32_t>(stored);
    chunks += frame.chunk_count;
    stored += frame.stored_bytes;
    raw += frame.raw_bytes;
    // Checked here, so that the casts above lose nothing.
    if (chunks > header.chunks || stored > header.data_bytes) break;
  }
  if (chunks != header.chunks || stored != header.data_bytes || raw != header.raw_bytes) {
    return damaged("the frames do not add up to what the header says");
  }
  return frames;
}

Result<std::vector<IdRun>> decode_id_runs(ByteReader& r, const Header& header) {
  std::vector<IdRun> runs(header.id_runs);
  std::uint64_t ids = 0;
  std::uint64_t next = 0;  // The id that would go on with the run before.
  for (auto& run : runs) {
    run.first.value = r.u64();
    run.count = r.u32();
    if (!r.ok() || run.count == 0 || run.first.ordinal() + std::uint64_t{run.count} > 1ULL << 32) {
      return damaged("a run of chunk ids is impossible");
    }
    const bool goes_on = ids != 0 && run.first.value == next && run.first.ordinal() != 0;
    if (goes_on) return damaged("runs of chunk ids are not joined");
    next = run.first.value + run.count;
    ids += run.count;
  }
  if (ids != header.chunks || base::IdRuns::from(runs).size() != ids) {
    return damaged("the chunk ids do not match the chunks, or one stands twice");
  }
  return runs;
}

// Fills in what follows from the order: every chunk's frame and place in it.
Result<void> place_chunks(ContainerHead& head) {
  std::size_t at = 0;
  for (std::uint32_t f = 0; f < head.frames.size(); ++f) {
    const FrameEntry& frame = head.frames[f];
    std::uint64_t offset = 0;
    for (std::uint32_t i = 0; i < frame.chunk_count; ++i, ++at) {
      ChunkEntry& chunk = head.chunks[at];
      if (chunk.raw_bytes == 0) return damaged("a chunk has no bytes");
      chunk.frame = f;
      chunk.frame_offset = static_cast<std::uint32_t>(offset);
      offset += chunk.raw_bytes;
      if (offset > frame.raw_bytes) break;
    }
    if (offset != frame.raw_bytes) return damaged("the chunks do not fill their frame");
  }
  return {};
}

void encode_tables(const ContainerHead& head, const std::vector<IdRun>& runs, std::string& out) {
  ByteWriter w(out);
  for (const auto& frame : head.frames) {
    w.u32(frame.chunk_count);
    w.u32(frame.stored_bytes);
    w.u32(frame.raw_bytes);
    w.u32(static_cast<std::uint32_t>(frame.codec));
    w.u64(frame.checksum);
  }
  for (const auto& run : runs) {
    w.u64(run.first.value);
    w.u32(run.count);
  }
  for (const auto& chunk : head.chunks) {
    w.bytes(chunk.fingerprint);
    w.u8(static_cast<std::uint8_t>(chunk.raw_bytes));
    w.u16(static_cast<std::uint16_t>(chunk.raw_bytes >> 8));
  }
}

}  // namespace

std::size_t container_head_bytes(std::size_t frames, std::size_t chunks, std::size_t id_runs,
                                 bool compact) {
  return padded_bytes(kContainerHeaderBytes + frames * kFrameEntryBytes + id_runs * kIdRunBytes +
                          chunks * kChunkEntryBytes,
                      compact);
}

std::string encode_container_head(ContainerHead& head) {
  const std::vector<IdRun> runs = runs_of(head.chunks);
  std::uint64_t chunks = 0;
  std::uint64_t stored = 0;
  head.raw_bytes = 0;
  for (auto& frame : head.frames) {
    VARVE_ASSERT(is_possible(frame));
    frame.first_chunk = static_cast<std::uint32_t>(chunks);
    frame.offset = static_cast<std::uint32_t>(stored);
    chunks += frame.chunk_count;
    stored += frame.stored_bytes;
    head.raw_bytes += frame.raw_bytes;
  }
  VARVE_ASSERT(chunks == head.chunks.size());
  VARVE_ASSERT(place_chunks(head).has_value());
  const std::size_t bytes =
      container_head_bytes(head.frames.size(), head.chunks.size(), runs.size(), head.compact);
  VARVE_ASSERT(bytes + padded_bytes(stored, head.compact) <= kContainerBytesMax);
  head.head_bytes = static_cast<std::uint32_t>(bytes);
  head.data_bytes = static_cast<std::uint32_t>(stored);

  std::string tables;
  tables.reserve(bytes - kContainerHeaderBytes);
  encode_tables(head, runs, tables);
  tables.resize(bytes - kContainerHeaderBytes, '\0');

  Header header;
  header.features = head.compact ? kFeatureCompact : 0;
  header.series = static_cast<std::uint32_t>(head.series);
  header.number = head.number;
  header.frames = static_cast<std::uint32_t>(head.frames.size());
  header.chunks = static_cast<std::uint32_t>(head.chunks.size());
  header.id_runs = static_cast<std::uint32_t>(runs.size());
  header.head_bytes = head.head_bytes;
  header.data_bytes = head.data_bytes;
  header.raw_bytes = head.raw_bytes;
  header.tables_checksum = checksum64(base::as_bytes(tables));
  return encode_header(header) + tables;
}

Result<std::uint32_t> container_head_length(std::span<const std::byte> start) {
  VARVE_TRY_ASSIGN(const Header header, decode_header(start));
  return header.head_bytes;
}

Result<ContainerHead> decode_container_head(std::span<const std::byte> bytes) {
  VARVE_TRY_ASSIGN(const Header header, decode_header(bytes));
  if (bytes.size() < header.head_bytes) return damaged("its tables are cut short");
  const auto tables =
      bytes.subspan(kContainerHeaderBytes, header.head_bytes - kContainerHeaderBytes);
  if (checksum64(tables) != header.tables_checksum) {
    return damaged("its tables do not match their checksum");
  }
  ContainerHead head;
  head.series = static_cast<SeriesId>(header.series);
  head.number = header.number;
  head.compact = (header.features & kFeatureCompact) != 0;
  head.head_bytes = header.head_bytes;
  head.data_bytes = header.data_bytes;
  head.raw_bytes = header.raw_bytes;
  ByteReader r(tables);
  VARVE_TRY_ASSIGN(head.frames, decode_frames(r, header));
  VARVE_TRY_ASSIGN(const auto runs, decode_id_runs(r, header));
  head.chunks.resize(header.chunks);
  auto chunk = head.chunks.begin();
  for (const auto& run : runs) {
    for (std::uint32_t i = 0; i < run.count; ++i, ++chunk) {
      chunk->id = run.first.plus(i);
      const auto fingerprint = r.bytes(sizeof(Fingerprint));
      std::copy(fingerprint.begin(), fingerprint.end(), chunk->fingerprint.begin());
      chunk->raw_bytes = r.u8();
      chunk->raw_bytes |= std::uint32_t{r.u16()} << 8;
    }
  }
  if (!r.ok() || !all_zero(r.bytes(r.left()))) return damaged("its padding is not zero");
  VARVE_TRY(place_chunks(head));
  return head;
}

}  // namespace varve::format
