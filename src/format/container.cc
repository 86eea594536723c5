// SPDX-License-Identifier: Apache-2.0
#include "format/container.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "format/compression.h"
#include "format/container_fixed_header.h"

namespace varve::format {

namespace {

using base::ByteReader;
using base::IdRun;

constexpr std::size_t kPlainFrameEntryBytes = 24;
constexpr std::size_t kSealedFrameEntryBytes = 32;
constexpr std::size_t kIdRunBytes = 12;
constexpr std::size_t kChunkEntryBytes = 32 + 3;
static_assert(sizeof(Fingerprint) == 32);

std::vector<IdRun> runs_of(const std::vector<ChunkEntry>& chunks) {
  std::vector<IdRun> runs;
  for (const auto& chunk : chunks) base::append_run(runs, {chunk.id, 1});
  return runs;
}

bool is_possible_frame(const FrameEntry& frame) {
  if (frame.chunk_count == 0 || frame.stored_bytes == 0) return false;
  if (frame.raw_bytes > kFrameRawBytesMax || frame.chunk_count > frame.raw_bytes) return false;
  return frame.codec == Codec::kNone ? frame.stored_bytes == frame.raw_bytes
                                     : frame.stored_bytes < frame.raw_bytes;
}

// Sets the length of the last frame's lead. Returns whether the frame may have its prefix.
bool resolve_prefix(std::span<FrameEntry> frames) {
  auto& frame = frames.back();
  frame.lead_bytes = 0;
  if (frame.prefix == 0) return true;
  if (frame.codec == Codec::kNone) return false;
  std::size_t prefixes = 0;
  for (std::size_t number = frames.size() - 1; frames[number].prefix != 0; ++prefixes) {
    if (frames[number].prefix > number || prefixes == kFramePrefixesMax) return false;
    number -= frames[number].prefix;
    frame.lead_bytes = frame.offset - frames[number].offset;
  }
  return extent_bytes(frame) <= kFrameExtentBytesMax;
}

Result<std::vector<FrameEntry>> decode_frames(ByteReader& r, const FixedHeader& fixed) {
  std::vector<FrameEntry> frames(fixed.frames);
  std::uint64_t chunks = 0;
  std::uint64_t stored = 0;
  std::uint64_t raw = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    auto& frame = frames[i];
    frame.chunk_count = r.u32();
    frame.stored_bytes = r.u32();
    frame.raw_bytes = r.u32();
    const std::uint8_t codec = r.u8();
    frame.prefix = r.u8();
    const bool zeros = all_zero(r.bytes(2));
    frame.checksum = r.u64();
    if (fixed.form.sealed) frame.tag_end = r.u64();
    frame.codec = static_cast<Codec>(codec);
    if (!r.ok() || find_compression(codec) == nullptr || !zeros || !is_possible_frame(frame)) {
      return damaged_header("a frame's entry is impossible");
    }
    frame.first_chunk = static_cast<std::uint32_t>(chunks);
    frame.offset = static_cast<std::uint32_t>(stored);
    if (!resolve_prefix(std::span(frames).first(i + 1))) {
      return damaged_header("a frame's prefix is impossible");
    }
    chunks += frame.chunk_count;
    stored += frame.stored_bytes;
    raw += frame.raw_bytes;
    // Checked inside the loop, so that the casts above lose nothing.
    if (chunks > fixed.chunks || stored > fixed.data_bytes) break;
  }
  if (chunks != fixed.chunks || stored != fixed.data_bytes || raw != fixed.raw_bytes) {
    return damaged_header("the sum of the frames differs from the fixed header");
  }
  if (has_prefixes(frames) != fixed.delta) {
    return damaged_header("its flags do not say whether a frame has a prefix");
  }
  return frames;
}

Result<std::vector<IdRun>> decode_id_runs(ByteReader& r, const FixedHeader& fixed) {
  std::vector<IdRun> runs(fixed.id_runs);
  std::uint64_t ids = 0;
  std::uint64_t next = 0;  // The id that would continue the previous run.
  for (auto& run : runs) {
    run.first.value = r.u64();
    run.count = r.u32();
    if (!r.ok() || run.count == 0 || !are_chunk_ids(run.first, run.count)) {
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

// The births of runs of ids, each once.
std::set<VersionNumber> births_of(const std::vector<IdRun>& runs) {
  std::set<VersionNumber> births;
  for (const auto& run : runs) births.insert(run.first.birth());
  return births;
}

// Decodes the marks behind the chunk table, if there are some.
Result<BirthMarks> decode_marks(ByteReader& r, const FixedHeader& fixed,
                                const std::vector<IdRun>& runs) {
  BirthMarks marks;
  if (!fixed.marked) return marks;
  const auto births = births_of(runs);
  if (fixed.header_bytes != container_header_bytes(fixed.frames, fixed.chunks, fixed.id_runs,
                                                   fixed.form, births.size())) {
    return damaged_header("its length does not fit the births of its chunks");
  }
  bool any = false;
  for (const auto birth : births) {
    auto& mark = marks[birth];
    std::ranges::copy(r.bytes(mark.size()), mark.begin());
    any = any || mark != kNoMark;
  }
  if (!any) return damaged_header("none of its births has a mark");
  return marks;
}

// Sets the members derived from the order: every chunk's frame and place in the frame.
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

// Returns the tables with zeros up to `end`, an offset in the header. Sets the counts and the
// checksum of the tables in `fixed`.
std::string encode_tables(const ContainerHeader& header, std::size_t end, FixedHeader& fixed) {
  const auto runs = runs_of(header.chunks);
  fixed.id_runs = static_cast<std::uint32_t>(runs.size());
  std::string out;
  out.reserve(header.header_bytes - kContainerFixedHeaderBytes);
  base::ByteWriter w(out);
  for (const auto& frame : header.frames) {
    w.u32(frame.chunk_count);
    w.u32(frame.stored_bytes);
    w.u32(frame.raw_bytes);
    w.u8(static_cast<std::uint8_t>(frame.codec));
    w.u8(frame.prefix);
    w.u16(0);
    w.u64(frame.checksum);
    if (header.seal) w.u64(frame.tag_end);
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
  for (const auto& [birth, mark] : header.marks) w.bytes(mark);
  out.resize(end - kContainerFixedHeaderBytes, '\0');
  fixed.tables_checksum = base::checksum64(base::as_bytes(out));
  return out;
}

FixedHeader fixed_header_of(const ContainerHeader& header) {
  FixedHeader fixed;
  fixed.form = header.form();
  fixed.marked = !header.marks.empty();
  fixed.delta = has_prefixes(header.frames);
  fixed.store = header.store;
  fixed.number = header.number;
  fixed.seal = header.seal;
  fixed.frames = static_cast<std::uint32_t>(header.frames.size());
  fixed.chunks = static_cast<std::uint32_t>(header.chunks.size());
  fixed.header_bytes = header.header_bytes;
  fixed.data_bytes = header.data_bytes;
  fixed.raw_bytes = header.raw_bytes;
  return fixed;
}

}  // namespace

bool has_prefixes(const std::vector<FrameEntry>& frames) {
  return std::ranges::any_of(frames, [](const FrameEntry& frame) { return frame.prefix != 0; });
}

void FrameEntry::set_tag(const crypto::Tag& tag) {
  checksum = base::load_le<std::uint64_t>(tag.data());
  tag_end = base::load_le<std::uint64_t>(tag.data() + sizeof checksum);
}

crypto::Tag FrameEntry::tag() const {
  crypto::Tag tag{};
  base::store_le(tag.data(), checksum);
  base::store_le(tag.data() + sizeof checksum, tag_end);
  return tag;
}

std::size_t container_header_bytes(std::size_t frames, std::size_t chunks, std::size_t id_runs,
                                   ContainerForm form, std::size_t marks) {
  const auto frame_bytes = form.sealed ? kSealedFrameEntryBytes : kPlainFrameEntryBytes;
  return padded_bytes(kContainerFixedHeaderBytes + frames * frame_bytes + id_runs * kIdRunBytes +
                          chunks * kChunkEntryBytes + marks * kBirthMarkBytes +
                          (form.sealed ? crypto::kTagBytes : 0),
                      form.compact);
}

void complete_header(ContainerHeader& header) {
  std::uint64_t chunks = 0;
  std::uint64_t stored = 0;
  header.raw_bytes = 0;
  for (std::size_t i = 0; i < header.frames.size(); ++i) {
    auto& frame = header.frames[i];
    VARVE_ASSERT(is_possible_frame(frame));
    frame.first_chunk = static_cast<std::uint32_t>(chunks);
    frame.offset = static_cast<std::uint32_t>(stored);
    VARVE_ASSERT(resolve_prefix(std::span(header.frames).first(i + 1)));
    chunks += frame.chunk_count;
    stored += frame.stored_bytes;
    header.raw_bytes += frame.raw_bytes;
  }
  VARVE_ASSERT(chunks == header.chunks.size());
  VARVE_ASSERT(place_chunks(header).has_value());
  const auto runs = runs_of(header.chunks);
  VARVE_ASSERT(header.marks.empty() || header.marks.size() == births_of(runs).size());
  const auto bytes = container_header_bytes(header.frames.size(), header.chunks.size(), runs.size(),
                                            header.form(), header.marks.size());
  const auto total = container_bytes(bytes, stored, header.form());
  VARVE_ASSERT(total <= kContainerBytesMax);
  header.header_bytes = static_cast<std::uint32_t>(bytes);
  header.data_bytes = static_cast<std::uint32_t>(stored);
  if (header.seal) header.seal->total_bytes = static_cast<std::uint32_t>(total);
}

std::string encode_container_header(ContainerHeader& header) {
  VARVE_ASSERT(!header.seal);
  complete_header(header);
  auto fixed = fixed_header_of(header);
  const std::string tables = encode_tables(header, header.header_bytes, fixed);
  const auto start = encode_fixed_header(fixed);
  header.checksum = checksum_of_fixed_header(base::as_bytes(start));
  return start + tables;
}

std::string unsealed_header_text(const ContainerHeader& header) {
  auto fixed = fixed_header_of(header);
  const std::string tables = encode_tables(header, header.header_bytes, fixed);
  return encode_fixed_header(fixed) + tables;
}

// Encrypted zeros look like encrypted frames. The tag of the padding is not needed.
void seal_padding(const ContainerHeader& header, const ContainerKey& key,
                  std::span<std::byte> zeros) {
  static_cast<void>(key.seal(fixed_header_of(header).part(ContainerPart::kPadding, 0), zeros));
}

std::string seal_container(ContainerHeader& header, const ContainerKey& key,
                           std::span<std::byte> data) {
  const auto rest = data.first(header.stored_bytes() - header.header_bytes);
  auto fixed = fixed_header_of(header);
  for (std::uint32_t i = 0; i < header.frames.size(); ++i) {
    auto& frame = header.frames[i];
    frame.set_tag(
        key.seal(fixed.part(i, frame.raw_bytes), rest.subspan(frame.offset, frame.stored_bytes)));
  }
  const auto padding = rest.subspan(header.data_bytes);
  std::fill(padding.begin(), padding.end(), std::byte{0});
  seal_padding(header, key, padding);

  std::string tables = encode_tables(header, header.header_bytes - crypto::kTagBytes, fixed);
  const auto tag =
      key.seal(fixed.part(ContainerPart::kHeader, 0), std::as_writable_bytes(std::span(tables)));
  base::ByteWriter(tables).bytes(tag);
  fixed.tables_checksum = base::checksum64(base::as_bytes(tables));
  base::ChecksumStream sum;
  sum.add(base::as_bytes(tables));
  sum.add(rest);
  fixed.outer_checksum = sum.sum();
  return seal_fixed_header(fixed, key) + tables;
}

Result<ContainerHeader> decode_container_header(std::span<const std::byte> bytes,
                                                const ContainerKeys* keys) {
  VARVE_TRY_ASSIGN(const FixedHeader fixed, decode_fixed_header(bytes, keys));
  if (bytes.size() < fixed.header_bytes) return damaged_header("its tables are cut short");
  auto tables =
      bytes.subspan(kContainerFixedHeaderBytes, fixed.header_bytes - kContainerFixedHeaderBytes);
  if (base::checksum64(tables) != fixed.tables_checksum) {
    return damaged_header("its tables do not match their checksum");
  }
  std::vector<std::byte> opened;
  if (fixed.seal) {
    const auto sealed = tables.first(tables.size() - crypto::kTagBytes);
    crypto::Tag tag{};
    std::ranges::copy(tables.last(tag.size()), tag.begin());
    opened.resize(sealed.size());
    VARVE_TRY_ASSIGN(const auto key, keys->key_of(fixed.seal->salt));
    auto open = key.open(fixed.part(ContainerPart::kHeader, 0), sealed, tag, opened);
    if (!open) return std::move(open).error().with_context("container header");
    tables = opened;
  }
  ContainerHeader header;
  header.store = fixed.store;
  header.number = fixed.number;
  header.compact = fixed.form.compact;
  header.header_bytes = fixed.header_bytes;
  header.data_bytes = fixed.data_bytes;
  header.raw_bytes = fixed.raw_bytes;
  header.seal = fixed.seal;
  if (!fixed.seal) header.checksum = fixed.checksum;
  base::ByteReader r(tables);
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
  VARVE_TRY_ASSIGN(header.marks, decode_marks(r, fixed, runs));
  if (!r.ok() || !all_zero(r.bytes(r.left()))) return damaged_header("its padding is not zero");
  VARVE_TRY(place_chunks(header));
  return header;
}

}  // namespace varve::format
