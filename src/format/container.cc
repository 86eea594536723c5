// SPDX-License-Identifier: Apache-2.0
#include "format/container.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "format/compression.h"

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
constexpr std::size_t kHeaderChecksumOffset = kContainerFixedHeaderBytes - sizeof(std::uint64_t);
static_assert(sizeof(Fingerprint) == 32);

// The fixed header's fields, in their order on disk.
struct FixedHeader {
  std::uint32_t magic = kContainerMagic;
  std::uint16_t format = kContainerFormat;
  std::uint16_t zero = 0;
  std::uint32_t features = 0;
  std::uint32_t store = 0;
  std::uint32_t number = 0;
  std::uint32_t frames = 0;
  std::uint32_t chunks = 0;
  std::uint32_t id_runs = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t data_bytes = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t tables_checksum = 0;  // Of everything in the header behind the fixed.
};

Error damaged_header(const std::string& what) {
  return {ErrorCode::kCorrupt, "container header: " + what};
}

std::string encode_fixed_header(const FixedHeader& fixed) {
  std::string out;
  out.reserve(kContainerFixedHeaderBytes);
  ByteWriter w(out);
  w.u32(fixed.magic);
  w.u16(fixed.format);
  w.u16(fixed.zero);
  w.u32(fixed.features);
  w.u32(fixed.store);
  w.u32(fixed.number);
  w.u32(fixed.frames);
  w.u32(fixed.chunks);
  w.u32(fixed.id_runs);
  w.u32(fixed.header_bytes);
  w.u32(fixed.data_bytes);
  w.u64(fixed.raw_bytes);
  w.u64(fixed.tables_checksum);
  out.append(kHeaderZeroBytes, '\0');
  VARVE_ASSERT(out.size() == kHeaderChecksumOffset);
  w.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// Reads and verifies the fixed header alone: afterwards its counts and lengths agree.
Result<FixedHeader> decode_fixed_header(std::span<const std::byte> start) {
  if (start.size() < kContainerFixedHeaderBytes) return damaged_header("it is cut short");
  const auto bytes = start.first(kContainerFixedHeaderBytes);
  ByteReader r(bytes);
  FixedHeader fixed;
  fixed.magic = r.u32();
  if (fixed.magic != kContainerMagic) return damaged_header("there is no container here");
  fixed.format = r.u16();
  fixed.zero = r.u16();
  fixed.features = r.u32();
  fixed.store = r.u32();
  fixed.number = r.u32();
  fixed.frames = r.u32();
  fixed.chunks = r.u32();
  fixed.id_runs = r.u32();
  fixed.header_bytes = r.u32();
  fixed.data_bytes = r.u32();
  fixed.raw_bytes = r.u64();
  fixed.tables_checksum = r.u64();
  const bool zeros = all_zero(r.bytes(kHeaderZeroBytes)) && fixed.zero == 0;
  if (r.u64() != base::checksum64(bytes.first(kHeaderChecksumOffset))) {
    return damaged_header("the fixed header does not match its checksum");
  }
  if (fixed.format != kContainerFormat || (fixed.features & ~kFeaturesKnown) != 0) {
    return Error(ErrorCode::kUnsupported, "container header: a newer Varve wrote it (format " +
                                              std::to_string(fixed.format) + ", features " +
                                              std::to_string(fixed.features) +
                                              "); use that version or a later one");
  }
  if (!zeros) return damaged_header("reserved bytes are not zero");
  // No product below overflows: the counts have 32 bits and are multiplied in 64.
  const bool compact = (fixed.features & kFeatureCompact) != 0;
  if (fixed.header_bytes !=
          container_header_bytes(fixed.frames, fixed.chunks, fixed.id_runs, compact) ||
      fixed.header_bytes + padded_bytes(fixed.data_bytes, compact) > kContainerBytesMax) {
    return damaged_header("its lengths are impossible");
  }
  if (fixed.frames > fixed.chunks || fixed.id_runs > fixed.chunks ||
      (fixed.chunks != 0 && (fixed.frames == 0 || fixed.id_runs == 0)) ||
      fixed.data_bytes > fixed.raw_bytes ||
      fixed.raw_bytes > std::uint64_t{fixed.frames} * kFrameRawBytesMax) {
    return damaged_header("its counts are impossible");
  }
  return fixed;
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

bool is_possible_frame(const FrameEntry& frame) {
  if (frame.chunk_count == 0 || frame.stored_bytes == 0) return false;
  if (frame.raw_bytes > kFrameRawBytesMax || frame.chunk_count > frame.raw_bytes) return false;
  return frame.codec == Codec::kNone ? frame.stored_bytes == frame.raw_bytes
                                     : frame.stored_bytes < frame.raw_bytes;
}

Result<std::vector<FrameEntry>> decode_frames(ByteReader& r, const FixedHeader& fixed) {
  std::vector<FrameEntry> frames(fixed.frames);
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
    if (!r.ok() || find_compression(codec) == nullptr || !zeros || !is_possible_frame(frame)) {
      return damaged_header("a frame's entry is impossible");
    }
    frame.first_chunk = static_cast<std::uint32_t>(chunks);
    frame.offset = static_cast<std::uint32_t>(stored);
    chunks += frame.chunk_count;
    stored += frame.stored_bytes;
    raw += frame.raw_bytes;
    // Checked here, so that the casts above lose nothing.
    if (chunks > fixed.chunks || stored > fixed.data_bytes) break;
  }
  if (chunks != fixed.chunks || stored != fixed.data_bytes || raw != fixed.raw_bytes) {
    return damaged_header("the sum of the frames differs from the fixed header");
  }
  return frames;
}

Result<std::vector<IdRun>> decode_id_runs(ByteReader& r, const FixedHeader& fixed) {
  std::vector<IdRun> runs(fixed.id_runs);
  std::uint64_t ids = 0;
  std::uint64_t next = 0;  // The id that would go on with the run before.
  for (auto& run : runs) {
    run.first.value = r.u64();
    run.count = r.u32();
    if (!r.ok() || run.count == 0 || run.first.ordinal() + std::uint64_t{run.count} > 1ULL << 32) {
      return damaged_header("a run of chunk ids is impossible");
    }
    const bool goes_on = ids != 0 && run.first.value == next && run.first.ordinal() != 0;
    if (goes_on) return damaged_header("runs of chunk ids are not joined");
    next = run.first.value + run.count;
    ids += run.count;
  }
  if (ids != fixed.chunks || base::IdRuns::from(runs).size() != ids) {
    return damaged_header("the chunk ids do not match the chunks, or one occurs twice");
  }
  return runs;
}

// Fills in what follows from the order: every chunk's frame and place in it.
Result<void> place_chunks(ContainerHeader& header) {
  std::size_t at = 0;
  for (std::uint32_t f = 0; f < header.frames.size(); ++f) {
    const FrameEntry& frame = header.frames[f];
    std::uint64_t offset = 0;
    for (std::uint32_t i = 0; i < frame.chunk_count; ++i, ++at) {
      ChunkEntry& chunk = header.chunks[at];
      if (chunk.raw_bytes == 0) return damaged_header("a chunk has no bytes");
      chunk.frame = f;
      chunk.frame_offset = static_cast<std::uint32_t>(offset);
      offset += chunk.raw_bytes;
      if (offset > frame.raw_bytes) break;
    }
    if (offset != frame.raw_bytes) return damaged_header("the chunks do not fill their frame");
  }
  return {};
}

void encode_tables(const ContainerHeader& header, const std::vector<IdRun>& runs,
                   std::string& out) {
  ByteWriter w(out);
  for (const auto& frame : header.frames) {
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
  for (const auto& chunk : header.chunks) {
    w.bytes(chunk.fingerprint);
    w.u8(static_cast<std::uint8_t>(chunk.raw_bytes));
    w.u16(static_cast<std::uint16_t>(chunk.raw_bytes >> 8));
  }
}

}  // namespace

std::size_t container_header_bytes(std::size_t frames, std::size_t chunks, std::size_t id_runs,
                                   bool compact) {
  return padded_bytes(kContainerFixedHeaderBytes + frames * kFrameEntryBytes +
                          id_runs * kIdRunBytes + chunks * kChunkEntryBytes,
                      compact);
}

std::string encode_container_header(ContainerHeader& header) {
  const std::vector<IdRun> runs = runs_of(header.chunks);
  std::uint64_t chunks = 0;
  std::uint64_t stored = 0;
  header.raw_bytes = 0;
  for (auto& frame : header.frames) {
    VARVE_ASSERT(is_possible_frame(frame));
    frame.first_chunk = static_cast<std::uint32_t>(chunks);
    frame.offset = static_cast<std::uint32_t>(stored);
    chunks += frame.chunk_count;
    stored += frame.stored_bytes;
    header.raw_bytes += frame.raw_bytes;
  }
  VARVE_ASSERT(chunks == header.chunks.size());
  VARVE_ASSERT(place_chunks(header).has_value());
  const std::size_t bytes = container_header_bytes(header.frames.size(), header.chunks.size(),
                                                   runs.size(), header.compact);
  VARVE_ASSERT(bytes + padded_bytes(stored, header.compact) <= kContainerBytesMax);
  header.header_bytes = static_cast<std::uint32_t>(bytes);
  header.data_bytes = static_cast<std::uint32_t>(stored);

  std::string tables;
  tables.reserve(bytes - kContainerFixedHeaderBytes);
  encode_tables(header, runs, tables);
  tables.resize(bytes - kContainerFixedHeaderBytes, '\0');

  FixedHeader fixed;
  fixed.features = header.compact ? kFeatureCompact : 0;
  fixed.store = static_cast<std::uint32_t>(header.store);
  fixed.number = static_cast<std::uint32_t>(header.number);
  fixed.frames = static_cast<std::uint32_t>(header.frames.size());
  fixed.chunks = static_cast<std::uint32_t>(header.chunks.size());
  fixed.id_runs = static_cast<std::uint32_t>(runs.size());
  fixed.header_bytes = header.header_bytes;
  fixed.data_bytes = header.data_bytes;
  fixed.raw_bytes = header.raw_bytes;
  fixed.tables_checksum = base::checksum64(base::as_bytes(tables));
  return encode_fixed_header(fixed) + tables;
}

Result<std::uint32_t> container_header_length(std::span<const std::byte> start) {
  VARVE_TRY_ASSIGN(const FixedHeader fixed, decode_fixed_header(start));
  return fixed.header_bytes;
}

Result<std::uint32_t> container_length(std::span<const std::byte> start) {
  VARVE_TRY_ASSIGN(const FixedHeader fixed, decode_fixed_header(start));
  const bool compact = (fixed.features & kFeatureCompact) != 0;
  return static_cast<std::uint32_t>(fixed.header_bytes + padded_bytes(fixed.data_bytes, compact));
}

bool correct_fixed_header(std::span<std::byte> start) {
  if (start.size() < kContainerFixedHeaderBytes) return false;
  constexpr int kValues = 256;
  // Asked first, since an error has a text: a search behind damage comes here at each place.
  const auto has_checksum = [&] {
    ByteReader r(start.subspan(kHeaderChecksumOffset));
    return r.u64() == base::checksum64(start.first(kHeaderChecksumOffset));
  };
  for (std::byte& byte : start.first(kContainerFixedHeaderBytes)) {
    const std::byte was = byte;
    for (int value = 0; value < kValues; ++value) {
      byte = static_cast<std::byte>(value);
      if (has_checksum() && decode_fixed_header(start)) return true;
    }
    byte = was;
  }
  return false;
}

Result<ContainerHeader> decode_container_header(std::span<const std::byte> bytes) {
  VARVE_TRY_ASSIGN(const FixedHeader fixed, decode_fixed_header(bytes));
  if (bytes.size() < fixed.header_bytes) return damaged_header("its tables are cut short");
  const auto tables =
      bytes.subspan(kContainerFixedHeaderBytes, fixed.header_bytes - kContainerFixedHeaderBytes);
  if (base::checksum64(tables) != fixed.tables_checksum) {
    return damaged_header("its tables do not match their checksum");
  }
  ContainerHeader header;
  header.store = static_cast<StoreId>(fixed.store);
  header.number = static_cast<ContainerNumber>(fixed.number);
  header.compact = (fixed.features & kFeatureCompact) != 0;
  header.header_bytes = fixed.header_bytes;
  header.data_bytes = fixed.data_bytes;
  header.raw_bytes = fixed.raw_bytes;
  ByteReader r(tables);
  VARVE_TRY_ASSIGN(header.frames, decode_frames(r, fixed));
  VARVE_TRY_ASSIGN(const auto runs, decode_id_runs(r, fixed));
  header.chunks.resize(fixed.chunks);
  auto chunk = header.chunks.begin();
  for (const auto& run : runs) {
    for (std::uint32_t i = 0; i < run.count; ++i, ++chunk) {
      chunk->id = run.first.plus(i);
      const auto fingerprint = r.bytes(sizeof(Fingerprint));
      std::copy(fingerprint.begin(), fingerprint.end(), chunk->fingerprint.begin());
      chunk->raw_bytes = r.u8();
      chunk->raw_bytes |= std::uint32_t{r.u16()} << 8;
    }
  }
  if (!r.ok() || !all_zero(r.bytes(r.left()))) return damaged_header("its padding is not zero");
  VARVE_TRY(place_chunks(header));
  return header;
}

}  // namespace varve::format
