// SPDX-License-Identifier: Apache-2.0
#include "remote/label_parts.h"

#include <algorithm>

#include "base/assert.h"
#include "base/checksum.h"
#include "base/coding.h"
#include "crypto/authentic.h"
#include "crypto/hmac.h"
#include "maintain/manifest_file.h"

namespace varve::remote {

namespace {

constexpr std::uint32_t kLeadMagic = 0x504c5656;  // "VVLP"
constexpr std::uint16_t kLeadFormat = 1;
constexpr std::size_t kLeadMacBytes = 32;
constexpr std::size_t kLeadSumBytes = 8;
constexpr std::size_t kLabelPartsMax = 4;

Error lead_damaged() { return {ErrorCode::kCorrupt, "the lead of a part of labels is damaged"}; }

// The magic number tells the texts of leads from those of heads, which have the same key.
crypto::Mac lead_mac(std::string_view text, const crypto::KeyRing* keys) {
  if (keys == nullptr) return {};
  return crypto::hmac_sha256(keys->key(crypto::Purpose::kHeads), base::as_bytes(text));
}

}  // namespace

std::string encode_lead(const LabelPart& part, const crypto::KeyRing* keys) {
  std::string out;
  base::ByteWriter writer(out);
  writer.u32(kLeadMagic);
  writer.u16(kLeadFormat);
  writer.u16(0);
  writer.u32(0);
  writer.u32(static_cast<std::uint32_t>(part.series));
  writer.u64(part.head);
  writer.u64(part.offset);
  writer.u64(part.bytes);
  writer.u64(part.checksum);
  writer.bytes(part.before);
  writer.bytes(lead_mac(out, keys));
  writer.u64(base::checksum64(base::as_bytes(out)));
  return out;
}

bool may_have_lead(std::string_view front) {
  base::ByteReader reader(front);
  return reader.u32() == kLeadMagic && reader.ok();
}

Result<LabelPart> decode_lead(std::string_view front, const crypto::KeyRing* keys) {
  if (front.size() < kLabelLeadBytes) return lead_damaged();
  const auto text = front.substr(0, kLabelLeadBytes);
  const auto summed = text.substr(0, text.size() - kLeadSumBytes);
  base::ByteReader sum(text.substr(summed.size()));
  if (sum.u64() != base::checksum64(base::as_bytes(summed))) return lead_damaged();
  const auto body = summed.substr(0, summed.size() - kLeadMacBytes);
  base::ByteReader reader(body);
  if (reader.u32() != kLeadMagic) return lead_damaged();
  if (reader.u16() != kLeadFormat || reader.u16() != 0) {
    return Error(ErrorCode::kUnsupported,
                 "the labels in the object store need a newer version of Varve");
  }
  if (!crypto::is_authentic(base::as_bytes(summed.substr(body.size())), lead_mac(body, keys))) {
    return Error(ErrorCode::kCorrupt,
                 "a program without the keys of the repository has written a part of labels");
  }
  LabelPart part;
  const auto zero = reader.u32();
  part.series = static_cast<SeriesId>(reader.u32());
  part.head = reader.u64();
  part.offset = reader.u64();
  part.bytes = reader.u64();
  part.checksum = reader.u64();
  const auto before = reader.bytes(part.before.size());
  const bool fits =
      part.offset <= kExtentBytesMax && part.bytes != 0 && part.bytes <= kExtentBytesMax;
  if (!reader.done() || zero != 0 || !fits) return lead_damaged();
  std::ranges::copy(before, part.before.begin());
  return part;
}

std::optional<SeriesId> series_of_labels(std::string_view path) {
  constexpr std::string_view kSeries = "series/";
  const auto end = path.rfind('/');
  if (!path.starts_with(kSeries) || path.substr(end + 1) != maintain::kLabelsName) {
    return std::nullopt;
  }
  return maintain::series_of_folder(path.substr(kSeries.size(), end - kSeries.size()));
}

std::size_t parts_to_keep(const std::vector<Extent>& parts, std::uint64_t bytes,
                          std::uint64_t bytes_max) {
  auto kept = parts.size();
  auto end = bytes_of(parts);
  VARVE_ASSERT(end <= bytes);
  if (end == bytes) return kept;
  while (kept != 0) {
    const auto last = parts[kept - 1].bytes;
    const bool is_short = last <= bytes - end || kept >= kLabelPartsMax;
    if (!is_short || bytes - end + last > bytes_max) break;
    end -= last;
    --kept;
  }
  return kept;
}

}  // namespace varve::remote
