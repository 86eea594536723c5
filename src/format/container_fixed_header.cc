// SPDX-License-Identifier: Apache-2.0
#include "format/container_fixed_header.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"

namespace varve::format {

namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr std::uint16_t kContainerFormat = 1;
constexpr std::uint32_t kFeatureCompact = 1;
constexpr std::uint32_t kFeatureSealed = 2;
constexpr std::uint32_t kFeatureMarked = 4;
constexpr std::uint32_t kFeatureDelta = 8;
constexpr std::uint32_t kFeaturesKnown =
    kFeatureCompact | kFeatureSealed | kFeatureMarked | kFeatureDelta;
constexpr std::size_t kCountsBytes = 36;
constexpr std::size_t kPlainZeroBytes = 64;
constexpr std::size_t kSealedZeroBytes = 4;
constexpr std::size_t kHeaderChecksumOffset = kContainerFixedHeaderBytes - sizeof(std::uint64_t);

void put_start(const FixedHeader& fixed, ByteWriter& w) {
  w.u32(kContainerMagic);
  w.u16(kContainerFormat);
  w.u16(0);
  w.u32(container_features(fixed.form, fixed.marked, fixed.delta));
  w.u32(static_cast<std::uint32_t>(fixed.store));
  w.u32(static_cast<std::uint32_t>(fixed.number));
}

void put_counts(const FixedHeader& fixed, ByteWriter& w) {
  w.u32(fixed.frames);
  w.u32(fixed.chunks);
  w.u32(fixed.id_runs);
  w.u32(fixed.header_bytes);
  w.u32(fixed.data_bytes);
  w.u64(fixed.raw_bytes);
  w.u64(fixed.tables_checksum);
}

std::string with_checksum(std::string start) {
  VARVE_ASSERT(start.size() == kHeaderChecksumOffset);
  const auto sum = base::checksum64(base::as_bytes(start));
  ByteWriter(start).u64(sum);
  return start;
}

void take_counts(ByteReader& r, FixedHeader& fixed) {
  fixed.frames = r.u32();
  fixed.chunks = r.u32();
  fixed.id_runs = r.u32();
  fixed.header_bytes = r.u32();
  fixed.data_bytes = r.u32();
  fixed.raw_bytes = r.u64();
  fixed.tables_checksum = r.u64();
}

Result<void> check_counts(const FixedHeader& fixed) {
  // No product below overflows: the counts have 32 bits and are multiplied in 64.
  const auto room = fixed.seal ? fixed.seal->total_bytes : kContainerBytesMax;
  const auto bytes_with = [&](std::size_t marks) {
    return container_header_bytes(fixed.frames, fixed.chunks, fixed.id_runs, fixed.form, marks);
  };
  // Only the id runs tell how many births there are. The tables' decoder compares again.
  const std::size_t marks_min = fixed.marked ? 1 : 0;
  const std::size_t marks_max = fixed.marked ? fixed.id_runs : 0;
  if (marks_max < marks_min || fixed.header_bytes < bytes_with(marks_min) ||
      fixed.header_bytes > bytes_with(marks_max) ||
      fixed.header_bytes + padded_bytes(fixed.data_bytes, fixed.form.compact) > room) {
    return damaged_header("its lengths are impossible");
  }
  if (fixed.frames > fixed.chunks || fixed.id_runs > fixed.chunks ||
      (fixed.chunks != 0 && (fixed.frames == 0 || fixed.id_runs == 0)) ||
      fixed.data_bytes > fixed.raw_bytes ||
      fixed.raw_bytes > std::uint64_t{fixed.frames} * kFrameRawBytesMax) {
    return damaged_header("its counts are impossible");
  }
  return {};
}

// The start of a container, as far as verifiable without keys.
struct Start {
  FixedHeader fixed;
  std::array<std::byte, kCountsBytes> sealed_counts{};
  crypto::Tag tag{};
};

Result<Start> decode_start(std::span<const std::byte> start) {
  if (start.size() < kContainerFixedHeaderBytes) return damaged_header("it is cut short");
  const auto bytes = start.first(kContainerFixedHeaderBytes);
  ByteReader r(bytes);
  if (r.u32() != kContainerMagic) return damaged_header("there is no container here");
  const std::uint16_t format = r.u16();
  const std::uint16_t zero = r.u16();
  const std::uint32_t features = r.u32();
  Start read;
  auto& fixed = read.fixed;
  fixed.store = static_cast<StoreId>(r.u32());
  fixed.number = static_cast<ContainerNumber>(r.u32());
  const auto sum = checksum_of_fixed_header(bytes);
  if (sum != base::checksum64(bytes.first(kHeaderChecksumOffset))) {
    return damaged_header("the fixed header does not match its checksum");
  }
  if (format != kContainerFormat || (features & ~kFeaturesKnown) != 0) {
    return Error(ErrorCode::kUnsupported, "container header: a newer Varve wrote it (format " +
                                              std::to_string(format) + ", features " +
                                              std::to_string(features) +
                                              "); use that version or a later one");
  }
  fixed.form = {(features & kFeatureCompact) != 0, (features & kFeatureSealed) != 0};
  fixed.marked = (features & kFeatureMarked) != 0;
  fixed.delta = (features & kFeatureDelta) != 0;
  fixed.checksum = sum;
  bool zeros = zero == 0;
  if (fixed.form.sealed) {
    auto& seal = fixed.seal.emplace();
    seal.total_bytes = r.u32();
    std::ranges::copy(r.bytes(seal.salt.size()), seal.salt.begin());
    std::ranges::copy(r.bytes(kCountsBytes), read.sealed_counts.begin());
    std::ranges::copy(r.bytes(read.tag.size()), read.tag.begin());
    zeros = all_zero(r.bytes(kSealedZeroBytes)) && zeros;
    fixed.outer_checksum = r.u64();
  } else {
    take_counts(r, fixed);
    zeros = all_zero(r.bytes(kPlainZeroBytes)) && zeros;
  }
  if (!zeros) return damaged_header("reserved bytes are not zero");
  if (!fixed.seal) {
    VARVE_TRY(check_counts(fixed));
    return read;
  }
  const auto total = fixed.seal->total_bytes;
  if (total < container_header_bytes(0, 0, 0, fixed.form) || total > kContainerBytesMax ||
      total != padded_bytes(total, fixed.form.compact)) {
    return damaged_header("its length is impossible");
  }
  return read;
}

}  // namespace

bool all_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

Error damaged_header(const std::string& what) {
  return {ErrorCode::kCorrupt, "container header: " + what};
}

ContainerPart FixedHeader::part(std::uint32_t index, std::uint64_t bound) const {
  return {store, number, container_features(form, false), *seal, index, bound};
}

std::uint32_t container_features(ContainerForm form, bool marked, bool delta) {
  return (form.compact ? kFeatureCompact : 0) | (form.sealed ? kFeatureSealed : 0) |
         (marked ? kFeatureMarked : 0) | (delta ? kFeatureDelta : 0);
}

std::uint64_t container_bytes(std::uint64_t header_bytes, std::uint64_t data_bytes,
                              ContainerForm form) {
  const std::uint64_t bytes = header_bytes + padded_bytes(data_bytes, form.compact);
  if (!form.sealed) return bytes;
  // Padmé: of a length below 2^(e+1), only the highest bits may be set, as many as e has digits.
  const auto e = static_cast<unsigned>(std::bit_width(bytes)) - 1;
  const unsigned zero_bits = e - static_cast<unsigned>(std::bit_width(e));
  const std::uint64_t mask = (std::uint64_t{1} << zero_bits) - 1;
  return padded_bytes((bytes + mask) & ~mask, form.compact);
}

std::uint64_t checksum_of_fixed_header(std::span<const std::byte> start) {
  return base::load_le<std::uint64_t>(&start[kHeaderChecksumOffset]);
}

std::string encode_fixed_header(const FixedHeader& fixed) {
  std::string out;
  out.reserve(kContainerFixedHeaderBytes);
  ByteWriter w(out);
  put_start(fixed, w);
  put_counts(fixed, w);
  out.append(kPlainZeroBytes, '\0');
  return with_checksum(std::move(out));
}

std::string seal_fixed_header(const FixedHeader& fixed, const ContainerKey& key) {
  std::string counts;
  ByteWriter counts_writer(counts);
  put_counts(fixed, counts_writer);
  VARVE_ASSERT(counts.size() == kCountsBytes);
  const auto tag = key.seal(fixed.part(ContainerPart::kCounts, fixed.outer_checksum),
                            std::as_writable_bytes(std::span(counts)));
  std::string out;
  out.reserve(kContainerFixedHeaderBytes);
  ByteWriter w(out);
  put_start(fixed, w);
  w.u32(fixed.seal->total_bytes);
  w.bytes(fixed.seal->salt);
  w.text(counts);
  w.bytes(tag);
  out.append(kSealedZeroBytes, '\0');
  w.u64(fixed.outer_checksum);
  return with_checksum(std::move(out));
}

Result<FixedHeader> decode_fixed_header(std::span<const std::byte> start,
                                        const ContainerKeys* keys) {
  VARVE_TRY_ASSIGN(auto read, decode_start(start));
  auto& fixed = read.fixed;
  if (!fixed.seal) {
    if (keys == nullptr) return fixed;
    return damaged_header("it is not sealed, although the repository is encrypted");
  }
  if (keys == nullptr) {
    return damaged_header("it is sealed, although the repository is not encrypted");
  }
  std::array<std::byte, kCountsBytes> counts{};
  VARVE_TRY_ASSIGN(const auto key, keys->key_of(fixed.seal->salt));
  auto opened = key.open(fixed.part(ContainerPart::kCounts, fixed.outer_checksum),
                         read.sealed_counts, read.tag, counts);
  if (!opened) return std::move(opened).error().with_context("container header");
  ByteReader r(counts);
  take_counts(r, fixed);
  VARVE_TRY(check_counts(fixed));
  return fixed;
}

Result<std::uint32_t> container_header_length(std::span<const std::byte> start,
                                              const ContainerKeys* keys) {
  VARVE_TRY_ASSIGN(const auto fixed, decode_fixed_header(start, keys));
  return fixed.header_bytes;
}

Result<std::uint32_t> container_length(std::span<const std::byte> start) {
  VARVE_TRY_ASSIGN(const auto read, decode_start(start));
  const auto& fixed = read.fixed;
  if (fixed.seal) return fixed.seal->total_bytes;
  return static_cast<std::uint32_t>(
      container_bytes(fixed.header_bytes, fixed.data_bytes, fixed.form));
}

Result<std::uint64_t> container_tables_checksum(std::span<const std::byte> start,
                                                const ContainerKeys* keys) {
  VARVE_TRY_ASSIGN(const auto fixed, decode_fixed_header(start, keys));
  return fixed.tables_checksum;
}

Result<std::optional<std::uint64_t>> container_outer_checksum(std::span<const std::byte> start) {
  VARVE_TRY_ASSIGN(const auto read, decode_start(start));
  return read.fixed.seal ? std::optional(read.fixed.outer_checksum) : std::nullopt;
}

bool correct_fixed_header(std::span<std::byte> start) {
  if (start.size() < kContainerFixedHeaderBytes) return false;
  constexpr int kValues = 256;
  // Asked first, since an error has a text: a search behind damage comes here at each place.
  const auto has_checksum = [&] {
    return base::load_le<std::uint64_t>(&start[kHeaderChecksumOffset]) ==
           base::checksum64(start.first(kHeaderChecksumOffset));
  };
  for (std::byte& byte : start.first(kContainerFixedHeaderBytes)) {
    const std::byte was = byte;
    for (int value = 0; value < kValues; ++value) {
      byte = static_cast<std::byte>(value);
      if (has_checksum() && decode_start(start)) return true;
    }
    byte = was;
  }
  return false;
}

}  // namespace varve::format
