// SPDX-License-Identifier: Apache-2.0
#include "format/container_record.h"

#include <fmt/core.h>

#include "base/coding.h"

namespace varve::format {

namespace {

// The flags of the record: the container's feature flags, and a flag for the checksum.
std::uint32_t record_flags(ContainerForm form, bool has_checksum) {
  constexpr std::uint32_t kHasChecksum = 4;
  return container_features(form, false) | (has_checksum ? kHasChecksum : 0);
}

}  // namespace

ContainerRecord ContainerRecord::of(const ContainerHeader& header, SegmentNumber segment,
                                    std::uint64_t offset) {
  ContainerRecord record;
  record.number = header.number;
  record.segment = segment;
  record.offset = offset;
  record.header_bytes = header.header_bytes;
  record.data_bytes = header.data_bytes;
  record.chunks = static_cast<std::uint32_t>(header.chunks.size());
  record.raw_bytes = header.raw_bytes;
  record.compact = header.compact;
  record.sealed = header.seal.has_value();
  record.checksum = header.checksum;
  if (header.seal) {
    record.total_bytes = header.seal->total_bytes;
    record.salt_start = base::load_le<std::uint64_t>(header.seal->salt.data());
  }
  if (!header.chunks.empty()) record.birth = header.chunks.front().id.birth();
  return record;
}

bool ContainerRecord::may_be(const ContainerHeader& header) const {
  const auto other = of(header, segment, offset);
  return other.number == number && other.form() == form() && other.end() == end() &&
         other.header_bytes == header_bytes && other.data_bytes == data_bytes &&
         other.salt_start == salt_start && (!checksum || other.checksum == checksum);
}

std::uint64_t ContainerRecord::end() const {
  if (sealed) return offset + total_bytes;
  return offset + header_bytes + padded_bytes(data_bytes, compact);
}

std::string ContainerRecord::encode() const {
  std::string out;
  base::ByteWriter w(out);
  const std::uint64_t unit = compact ? 1 : kContainerAlignment;
  w.varint(static_cast<std::uint32_t>(segment));
  w.u8(static_cast<std::uint8_t>(record_flags(form(), checksum.has_value())));
  w.varint(offset / unit);
  w.varint(header_bytes / unit);
  w.varint(data_bytes);
  w.varint(chunks);
  w.varint(raw_bytes);
  w.varint(live_bytes);
  w.varint(static_cast<std::uint32_t>(birth));
  if (checksum) w.u64(*checksum);
  if (!sealed) return out;
  w.varint(total_bytes / unit);
  w.u64(salt_start);
  return out;
}

Result<ContainerRecord> ContainerRecord::decode(ContainerNumber number, std::string_view bytes) {
  base::ByteReader r(bytes);
  const std::uint64_t segment = r.varint();
  const std::uint8_t flags = r.u8();
  const bool compact = (flags & record_flags({true, false}, false)) != 0;
  const bool sealed = (flags & record_flags({false, true}, false)) != 0;
  const bool has_checksum = (flags & record_flags({}, true)) != 0;
  const std::uint64_t offset = r.varint();
  const std::uint64_t header = r.varint();
  const std::uint64_t data = r.varint();
  const std::uint64_t chunks = r.varint();
  const std::uint64_t raw = r.varint();
  const std::uint64_t live = r.varint();
  const std::uint64_t birth = r.varint();
  const std::uint64_t unit = compact ? 1 : kContainerAlignment;
  const std::uint64_t checksum = has_checksum ? r.u64() : 0;
  const std::uint64_t total = sealed ? r.varint() : kContainerBytesMax / unit;
  const std::uint64_t salt_start = sealed ? r.u64() : 0;
  if (!r.done() || segment > 0xffffffffU || (sealed && has_checksum) ||
      flags != record_flags({compact, sealed}, has_checksum) || offset > (1ULL << 40) ||
      header == 0 || header > kContainerBytesMax / unit || data > kContainerBytesMax ||
      total > kContainerBytesMax / unit || header * unit + data > total * unit ||
      chunks > kContainerBytesMax || raw > (1ULL << 40) || live > raw || birth > 0xffffffffU) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("catalog: container {} has a bad record", number));
  }
  ContainerRecord record;
  record.number = number;
  record.segment = static_cast<SegmentNumber>(segment);
  record.compact = compact;
  record.sealed = sealed;
  if (sealed) record.total_bytes = static_cast<std::uint32_t>(total * unit);
  record.salt_start = salt_start;
  if (has_checksum) record.checksum = checksum;
  record.offset = offset * unit;
  record.header_bytes = static_cast<std::uint32_t>(header * unit);
  record.data_bytes = static_cast<std::uint32_t>(data);
  record.chunks = static_cast<std::uint32_t>(chunks);
  record.raw_bytes = raw;
  record.live_bytes = live;
  record.birth = static_cast<VersionNumber>(birth);
  return record;
}

}  // namespace varve::format
