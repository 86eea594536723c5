// SPDX-License-Identifier: Apache-2.0
// The hidden attributes of a version's root, seen only by Varve: the claimed time
// (catalog/claimed_time.h), the mark of an incomplete version, and the origin and progress of a
// copy from another repository.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "varve/types.h"

namespace varve::catalog {

inline constexpr std::string_view kIncompleteAttribute = "user.varve.incomplete";
inline constexpr std::string_view kOriginAttribute = "user.varve.copied_from";
inline constexpr std::string_view kCopyMarkAttribute = "user.varve.copy_mark";

/// The progress of the copy into an open version.
struct CopyMark {
  VersionNumber base{};       ///< Base of the clone that the copy started as; 0 for none.
  std::uint64_t changes = 0;  ///< Number of durable changes of the copy.
  bool operator==(const CopyMark&) const = default;
};

/// Return the attributes' values (docs/FORMAT.md §7). `number` is the version with the attributes.
[[nodiscard]] std::string encode_origin(VersionNumber number, const VersionOrigin& origin);
/// `problems`: see VersionInfo::problems.
[[nodiscard]] std::string encode_incomplete(VersionNumber number, std::uint64_t problems);
/// Returns the origin's value while the version receives the copy. Only the seal by the copier
/// makes the version count as a copy.
[[nodiscard]] std::string encode_receiving(VersionNumber number, const VersionOrigin& origin);
[[nodiscard]] std::string encode_copy_mark(VersionNumber number, const CopyMark& mark);

/// Returns the origin in the attributes of a version's root. Returns nullopt if the origin is
/// absent or invalid, if the copy is still received, or if the clone inherited the base's origin.
[[nodiscard]] std::optional<VersionOrigin> origin_of(VersionNumber number, const Xattrs& of_root);
/// Returns the origin, `whole`, of a version that still receives the copy; nullopt for a version
/// that does not, or for the same faults as origin_of().
[[nodiscard]] std::optional<VersionOrigin> receiving_origin_of(VersionNumber number,
                                                               const Xattrs& of_root);
/// Returns the copy mark; nullopt if the mark is absent, invalid or inherited from the base.
[[nodiscard]] std::optional<CopyMark> copy_mark_of(VersionNumber number, const Xattrs& of_root);

/// Returns the number of problems of an incomplete version; 0 without a valid mark of version
/// `number`.
[[nodiscard]] std::uint64_t problems_of(VersionNumber number, const Xattrs& of_root);

/// Adds the mark of an incomplete version to the root's attributes, unless version `number` has a
/// valid mark.
void mark_incomplete(Xattrs& of_root, VersionNumber number);

/// Turns the mark that a clone's root inherited from the version `base`, if any, into a mark of the
/// clone `number`.
void inherit_incomplete(Xattrs& of_root, VersionNumber base, VersionNumber number);

/// Returns whether only Varve sees the attribute `name` of a version's root.
[[nodiscard]] bool is_hidden_attribute(std::string_view name);
/// Removes the attributes seen only by Varve.
void hide_own_attributes(Xattrs& of_root);

}  // namespace varve::catalog
