// SPDX-License-Identifier: Apache-2.0
// Parts of the labels of a series, each in an object of its own. docs/decisions/170.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "crypto/key_ring.h"
#include "remote/changes.h"
#include "remote/head.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::remote {

/// A part of the labels of a series. The lead at the front of the object shows the part's place, so
/// a rebuild without heads can join the parts.
struct LabelPart {
  SeriesId series{};
  std::uint64_t head = 0;    ///< Number of the head for which the part was uploaded.
  std::uint64_t offset = 0;  ///< Offset of the part in the labels, in bytes.
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  ///< XXH3-64 of the part's bytes.
  Digest before{};             ///< SHA-256 of all bytes of the labels before the part.

  [[nodiscard]] std::uint64_t end() const { return offset + bytes; }
};

/// Length of a lead, in bytes.
inline constexpr std::size_t kLabelLeadBytes = 120;

/// Returns the lead of a part. `keys` are null in a plain repository.
[[nodiscard]] std::string encode_lead(const LabelPart& part, const crypto::KeyRing* keys);
/// Returns whether an object that begins so has a lead, perhaps a damaged one.
[[nodiscard]] bool may_have_lead(std::string_view front);
/// Decodes the lead at the front of an object. Errors: kCorrupt for a damaged lead, and for a lead
/// of a program without the keys; kUnsupported for a lead of a newer format.
[[nodiscard]] Result<LabelPart> decode_lead(std::string_view front, const crypto::KeyRing* keys);

/// Returns the series whose labels have the path in the repository; nullopt for another file.
[[nodiscard]] std::optional<SeriesId> series_of_labels(std::string_view path);

/// Returns how many of the present parts stay if labels grow to `bytes` bytes. One new part holds
/// the rest of the labels. A part that is no longer than the bytes behind it is written again, and
/// so is the last part of many: so labels have few parts, and each byte is written few times.
/// `bytes_max`: longer parts always stay.
[[nodiscard]] std::size_t parts_to_keep(const std::vector<Extent>& parts, std::uint64_t bytes,
                                        std::uint64_t bytes_max);

}  // namespace varve::remote
