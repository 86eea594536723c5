// SPDX-License-Identifier: Apache-2.0
// The identity of a birth. Two histories of one repository, for example after an older state was
// restored, give the same numbers to different chunks; the marks and chunk digests of the births
// differ.
// docs/FORMAT.md §3, §7 and §9.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "varve/result.h"
#include "varve/types.h"

namespace varve::format {

/// Random bytes, chosen by the writer with the first chunk of a birth.
using BirthMark = std::array<std::byte, 16>;
inline constexpr std::size_t kBirthMarkBytes = sizeof(BirthMark);
/// Stands for the missing mark of a birth begun by an earlier Varve.
inline constexpr BirthMark kNoMark{};

/// Marks, by birth.
using BirthMarks = std::map<VersionNumber, BirthMark>;
/// Returns the marks of `births` for a container: kNoMark for a birth missing in `known`. Returns
/// no marks if `known` lacks all births.
[[nodiscard]] BirthMarks marks_for(const std::set<VersionNumber>& births, const BirthMarks& known);

/// Returns the summand of a chunk, modulo 2^64, in the digest of its birth. `id`: the chunk's id in
/// the recipes of versions.
[[nodiscard]] std::uint64_t chunk_digest(ChunkId id, const Fingerprint& fingerprint,
                                         std::uint32_t raw_bytes);

/// The record of a birth in the catalog and in manifests.
struct Birth {
  BirthMark mark{};
  SeriesId series{};        ///< The series of `version`.
  VersionNumber version{};  ///< The version during which the chunks were stored.
  /// Sum of chunk_digest() of the birth's chunks in use by `version`; nullopt until the version's
  /// seal.
  std::optional<std::uint64_t> digest{};

  [[nodiscard]] std::string encode() const;
  /// Errors: kCorrupt.
  [[nodiscard]] static Result<Birth> decode(std::string_view bytes);
  bool operator==(const Birth&) const = default;
};

/// Births, by number. The numbers of the pool's births have kPoolBit.
using Births = std::map<VersionNumber, Birth>;
[[nodiscard]] std::string encode_births(const Births& births);
/// Errors: kCorrupt.
[[nodiscard]] Result<Births> decode_births(std::string_view bytes);

}  // namespace varve::format
