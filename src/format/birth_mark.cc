// SPDX-License-Identifier: Apache-2.0
#include "format/birth_mark.h"

#include <algorithm>
#include <span>

#include "base/checksum.h"
#include "base/coding.h"
#include "format/container.h"

namespace varve::format {

namespace {

Error bad_birth() { return {ErrorCode::kCorrupt, "a record of births is damaged"}; }

void put_birth(base::ByteWriter& w, const Birth& birth) {
  w.bytes(birth.mark);
  w.varint(static_cast<std::uint32_t>(birth.series));
  w.varint(static_cast<std::uint32_t>(birth.version));
  w.u8(birth.digest ? 1 : 0);
  if (birth.digest) w.u64(*birth.digest);
}

// Returns false if the bytes are no birth.
bool take_birth(base::ByteReader& r, Birth& birth) {
  std::ranges::copy(r.bytes(birth.mark.size()), birth.mark.begin());
  const std::uint64_t series = r.varint();
  const std::uint64_t version = r.varint();
  const std::uint8_t has_digest = r.u8();
  if (has_digest == 1) birth.digest = r.u64();
  birth.series = static_cast<SeriesId>(series);
  birth.version = static_cast<VersionNumber>(version);
  return r.ok() && has_digest <= 1 && series <= UINT32_MAX && version <= UINT32_MAX &&
         birth.mark != kNoMark;
}

}  // namespace

BirthMarks marks_for(const std::set<VersionNumber>& births, const BirthMarks& known) {
  BirthMarks marks;
  const auto has_mark = [&](VersionNumber birth) { return known.contains(birth); };
  if (std::ranges::none_of(births, has_mark)) return marks;
  for (const auto birth : births) marks[birth] = has_mark(birth) ? known.at(birth) : kNoMark;
  return marks;
}

std::uint64_t chunk_digest(ChunkId id, const Fingerprint& fingerprint, std::uint32_t raw_bytes) {
  std::array<std::byte, sizeof id.value + sizeof fingerprint + sizeof raw_bytes> bytes{};
  base::store_le(bytes.data(), id.value);
  std::ranges::copy(std::as_bytes(std::span(fingerprint)), bytes.begin() + sizeof id.value);
  base::store_le(bytes.data() + sizeof id.value + sizeof fingerprint, raw_bytes);
  return base::checksum64(bytes);
}

std::string Birth::encode() const {
  std::string out;
  base::ByteWriter w(out);
  put_birth(w, *this);
  return out;
}

Result<Birth> Birth::decode(std::string_view bytes) {
  base::ByteReader r(bytes);
  Birth birth;
  if (!take_birth(r, birth) || !r.done()) return bad_birth();
  return birth;
}

std::string encode_births(const Births& births) {
  std::string out;
  base::ByteWriter w(out);
  w.varint(births.size());
  std::uint32_t before = 0;
  for (const auto& [number, birth] : births) {
    w.varint(static_cast<std::uint32_t>(number) - before);
    before = static_cast<std::uint32_t>(number);
    put_birth(w, birth);
  }
  return out;
}

Result<Births> decode_births(std::string_view bytes) {
  base::ByteReader r(bytes);
  Births births;
  std::uint64_t number = 0;
  for (std::uint64_t left = r.varint(); left != 0; --left) {
    const std::uint64_t gap = r.varint();
    Birth birth;
    if (gap == 0 || gap > UINT32_MAX - number || !take_birth(r, birth)) return bad_birth();
    number += gap;
    births.emplace_hint(births.end(), static_cast<VersionNumber>(number), birth);
  }
  if (!r.done()) return bad_birth();
  return births;
}

}  // namespace varve::format
