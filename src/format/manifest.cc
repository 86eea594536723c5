// SPDX-License-Identifier: Apache-2.0
#include "format/manifest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"

namespace varve::format {

namespace {

constexpr std::uint16_t kManifestFormat = 1;
constexpr std::uint16_t kGrowingFormat = 2;
constexpr std::size_t kZeroBytes = 8;  // Reserved bytes of the header, before the checksum.
constexpr std::size_t kKeyBytesMax = 255;
constexpr std::uint8_t kMoreFlag = 0x80;
constexpr std::uint8_t kLaterFlag = 0x40;
constexpr std::uint8_t kLastRecord = static_cast<std::uint8_t>(ManifestRecord::kBirths);

Error damaged_manifest(const char* what) {
  return {ErrorCode::kCorrupt, std::string("manifest: ") + what};
}

}  // namespace

std::string encode_manifest_header(const ManifestHeader& header) {
  std::string out;
  base::ByteWriter w(out);
  w.u32(kManifestMagic);
  w.u16(header.grows ? kGrowingFormat : kManifestFormat);
  w.u16(static_cast<std::uint16_t>(header.kind));
  w.u32(static_cast<std::uint32_t>(header.series));
  w.u32(static_cast<std::uint32_t>(header.number));
  w.u64(header.blocks);
  w.u64(header.stored_bytes);
  w.u64(header.records);
  w.u64(header.stamp);
  out.append(kZeroBytes, '\0');
  w.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

Result<ManifestHeader> decode_manifest_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kManifestHeaderBytes)
    return damaged_manifest("the file ends inside the header");
  base::ByteReader r(bytes.first(kManifestHeaderBytes));
  if (r.u32() != kManifestMagic) return damaged_manifest("this is not a manifest");
  constexpr std::size_t kSummed = kManifestHeaderBytes - sizeof(std::uint64_t);
  if (base::checksum64(bytes.first(kSummed)) !=
      base::load_le<std::uint64_t>(bytes.data() + kSummed)) {
    return damaged_manifest("the header does not match its checksum");
  }
  const std::uint16_t format = r.u16();
  const std::uint16_t kind = r.u16();
  const bool manifest = kind == static_cast<std::uint16_t>(ManifestKind::kVersion);
  if (format != kManifestFormat && (format != kGrowingFormat || manifest)) {
    return Error(ErrorCode::kUnsupported, "manifest: its format is newer; use a newer Varve");
  }
  ManifestHeader header;
  header.kind = static_cast<ManifestKind>(kind);
  header.grows = format == kGrowingFormat;
  header.series = static_cast<SeriesId>(r.u32());
  header.number = static_cast<VersionNumber>(r.u32());
  const std::uint64_t blocks = r.u64();
  header.blocks = static_cast<std::uint32_t>(blocks);
  header.stored_bytes = r.u64();
  header.records = r.u64();
  header.stamp = r.u64();
  const bool labels = header.kind != ManifestKind::kVersion;
  const bool must_grow = header.kind == ManifestKind::kUpdate;
  if (kind < 1 || kind > 3 || (must_grow && !header.grows) ||
      labels != (header.number == VersionNumber{}) || (!labels && header.stamp != 0) ||
      r.u64() != 0 || blocks > 0xffffffffU ||
      header.stored_bytes / kManifestBlockHeaderBytes < blocks) {
    return damaged_manifest("the header contradicts itself");
  }
  return header;
}

FramePlace place_of_block(const ManifestHeader& header, std::uint32_t block) {
  const bool labels = header.kind != ManifestKind::kVersion;
  // The stamp distinguishes the updates of one file.
  const bool update = header.kind == ManifestKind::kUpdate;
  return {
      labels ? FramePlace::Unit::kLabels : FramePlace::Unit::kManifest,
      static_cast<std::uint32_t>(header.series),
      update ? static_cast<std::uint32_t>(header.stamp) : static_cast<std::uint32_t>(header.number),
      block,
      false,
      std::nullopt};
}

ManifestEncoder::ManifestEncoder(const ManifestHeader& identity, const FrameCodec& codec,
                                 const Compression& compression, Sink sink)
    : header_(identity), codec_(codec), compression_(compression), sink_(std::move(sink)) {
  header_.blocks = 0;
  header_.stored_bytes = 0;
  header_.records = 0;
}

Result<void> ManifestEncoder::add(ManifestRecord what, std::string_view key,
                                  std::string_view value) {
  VARVE_ASSERT(key.size() <= kKeyBytesMax);
  const std::size_t room = kManifestBlockRawMax - kManifestPieceOverhead - key.size();
  ManifestPiece piece{what, false, value.size() > room, key, value.substr(0, room)};
  while (piece.more) {
    VARVE_TRY(add_piece(piece));
    value.remove_prefix(room);
    piece = {what, true, value.size() > room, key, value.substr(0, room)};
  }
  return add_piece(piece);
}

Result<void> ManifestEncoder::add_piece(const ManifestPiece& piece) {
  const std::size_t bytes = kManifestPieceOverhead + piece.key.size() + piece.value.size();
  if (block_.size() + bytes > kManifestBlockRawMax) VARVE_TRY(end_block());
  base::ByteWriter w(block_);
  const int flags = (piece.more ? kMoreFlag : 0) | (piece.later ? kLaterFlag : 0);
  w.u8(static_cast<std::uint8_t>(static_cast<std::uint8_t>(piece.what) | flags));
  w.sized_text(piece.key);
  w.sized_text(piece.value);
  ++header_.records;
  return {};
}

Result<void> ManifestEncoder::end_block() {
  if (block_.empty()) return {};
  const auto raw = std::as_writable_bytes(std::span(block_));
  auto packed = codec_.compress_as(compression_, raw);
  const auto stored = packed.codec == Codec::kNone ? raw : std::span(packed.stored);
  std::string out;
  base::ByteWriter w(out);
  w.u32(static_cast<std::uint32_t>(stored.size()));
  w.u32(static_cast<std::uint32_t>(raw.size()));
  w.u32(static_cast<std::uint32_t>(packed.codec));
  w.u64(codec_.seal(place_of_block(header_, header_.blocks), stored));
  w.bytes(stored);
  block_.clear();
  ++header_.blocks;
  header_.stored_bytes += out.size();
  return sink_(out);
}

Result<ManifestHeader> ManifestEncoder::finish() {
  VARVE_TRY(end_block());
  return header_;
}

Result<FrameEntry> decode_manifest_block_header(std::span<const std::byte> header) {
  base::ByteReader r(header);
  FrameEntry block;
  block.stored_bytes = r.u32();
  block.raw_bytes = r.u32();
  const std::uint32_t codec = r.u32();
  block.checksum = r.u64();
  block.codec = static_cast<Codec>(codec);
  if (!r.ok() || block.raw_bytes == 0 || block.raw_bytes > kManifestBlockRawMax ||
      block.stored_bytes == 0 || block.stored_bytes > block.raw_bytes ||
      find_compression(codec) == nullptr ||
      (block.codec == Codec::kNone) != (block.stored_bytes == block.raw_bytes)) {
    return damaged_manifest("a block has impossible lengths");
  }
  return block;
}

Result<void> for_each_manifest_piece(
    std::span<const std::byte> raw,
    const std::function<Result<void>(const ManifestPiece&)>& visit) {
  base::ByteReader r(raw);
  while (r.left() != 0) {
    const std::uint8_t what = r.u8();
    ManifestPiece piece;
    piece.what = static_cast<ManifestRecord>(what & ~(kMoreFlag | kLaterFlag));
    piece.later = (what & kLaterFlag) != 0;
    piece.more = (what & kMoreFlag) != 0;
    piece.key = r.sized_text(kKeyBytesMax);
    piece.value = r.sized_text(kManifestBlockRawMax);
    const auto number = static_cast<std::uint8_t>(piece.what);
    if (!r.ok() || number == 0 || number > kLastRecord)
      return damaged_manifest("a block has bad records");
    VARVE_TRY(visit(piece));
  }
  return {};
}

}  // namespace varve::format
