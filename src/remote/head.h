// SPDX-License-Identifier: Apache-2.0
// Heads: the commits of a repository in an object store. docs/FORMAT.md §15.2.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/key_ring.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::remote {

using Digest = std::array<std::byte, 32>;
/// Returns the SHA-256 of a text.
[[nodiscard]] Digest digest_of(std::string_view text);

/// Limits of a head: bytes, and named catalog objects.
inline constexpr std::size_t kHeadBytesMax = std::size_t{16} << 20;
inline constexpr std::size_t kCatalogObjectsMax = 100000;

/// Limit of the lost heads of a store. A head with a number above all listed heads by this
/// difference is above all lost heads, too.
inline constexpr std::uint64_t kLostHeadsMax = 1'000'000;

/// An object with a part of the catalog.
struct CatalogObject {
  std::string name{};
  std::uint64_t bytes = 0;
  Digest digest{};  ///< SHA-256 of the object.

  bool operator==(const CatalogObject&) const = default;
};

/// A commit. Applied to nothing in order, its catalog objects give the catalog and the map of
/// objects.
struct Head {
  std::string repository_id{};     ///< 32 hexadecimal digits.
  std::uint64_t number = 0;        ///< 1 for the first head; no number is left out.
  std::uint64_t epoch = 0;         ///< Grows by one when another process writes.
  std::string holder{};            ///< 16 hexadecimal digits, random for each writing process.
  std::int64_t seconds = 0;        ///< Time of the commit since 1970, by the writer's clock.
  Digest previous{};               ///< SHA-256 of the preceding head; zeros in the first head.
  std::uint64_t commit = 0;        ///< The catalog's transaction stored by the head.
  std::string superblock{};        ///< The text of `varve.repo`.
  std::uint64_t base_objects = 0;  ///< Number of catalog objects at the front that form the base.
  std::vector<CatalogObject> catalog{};

  bool operator==(const Head&) const = default;
};

/// Encodes a head. `keys` authenticate the head of an encrypted repository.
[[nodiscard]] std::string encode_head(const Head& head, const crypto::KeyRing* keys);
/// Decodes a head, and checks its checksum. Errors: kCorrupt; kUnsupported for a newer format.
[[nodiscard]] Result<Head> decode_head(std::string_view text);
/// Checks that a program with the keys wrote the head; a plain repository has no keys. Errors:
/// kCorrupt.
[[nodiscard]] Result<void> authenticate_head(std::string_view text, const crypto::KeyRing* keys);

/// Returns the names of objects.
[[nodiscard]] std::string head_prefix(const std::string& repository_id);
[[nodiscard]] std::string head_name(const std::string& repository_id, std::uint64_t number);
/// Returns the number in the name of a head; nullopt if no head has the name.
[[nodiscard]] std::optional<std::uint64_t> head_number(const std::string& repository_id,
                                                       std::string_view name);
/// Returns the name of the copy of a head, a catalog object or a small file's object.
[[nodiscard]] std::string copy_name(std::string_view name);
/// Returns the name of the copied object; nullopt if no copy has the name.
[[nodiscard]] std::optional<std::string> copied_name(std::string_view name);
/// Returns the head's own object, its catalog objects, and the copies of these objects. The map
/// has the names of the remaining objects.
[[nodiscard]] std::set<std::string> names_of(const Head& head);
/// The object that makes a prefix a repository.
inline constexpr const char* kSuperblockName = "varve.repo";

}  // namespace varve::remote
