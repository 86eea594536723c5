// SPDX-License-Identifier: Apache-2.0
// The identity of a birth. Two histories of one repository, as after a restored older state, give
// the same numbers to different chunks; their marks, and the digests of their chunks, differ.
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

/// Random bytes that a writer chooses with the first chunk of a birth.
using BirthMark = std::array<std::byte, 16>;
inline constexpr std::size_t kBirthMarkBytes = sizeof(BirthMark);
/// Stands for the mark of a birth that an earlier Varve began without one.
inline constexpr BirthMark kNoMark{};

/// Marks, by birth.
using BirthMarks = std::map<VersionNumber, BirthMark>;
/// Returns the marks of `births` for a container: kNoMark for a birth that `known` lacks. Returns
/// no marks if it lacks them all.
[[nodiscard]] BirthMarks marks_for(const std::set<VersionNumber>& births, const BirthMarks& known);

/// Returns what a chunk adds, modulo 2^64, to the digest of its birth. `id`: the one under which
/// versions refer to the chunk.
[[nodiscard]] std::uint64_t chunk_digest(ChunkId id, const Fingerprint& fingerprint,
                                         std::uint32_t raw_bytes);

/// A birth, as the catalog and manifests record it.
struct Birth {
  BirthMark mark{};
  SeriesId series{};        ///< The series of `version`.
  VersionNumber version{};  ///< The version that stored the chunks.
  /// Sum of chunk_digest() of the birth's chunks to which `version` refers; nullopt until its seal.
  std::optional<std::uint64_t> digest{};

  [[nodiscard]] std::string encode() const;
  /// Errors: kCorrupt.
  [[nodiscard]] static Result<Birth> decode(std::string_view bytes);
  bool operator==(const Birth&) const = default;
};

/// Births, by number. Those of the pool have kPoolBit in theirs.
using Births = std::map<VersionNumber, Birth>;
[[nodiscard]] std::string encode_births(const Births& births);
/// Errors: kCorrupt.
[[nodiscard]] Result<Births> decode_births(std::string_view bytes);

}  // namespace varve::format
