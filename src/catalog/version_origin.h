// SPDX-License-Identifier: Apache-2.0
// The attributes of a version's root that only Varve sees: the claimed time
// (catalog/claimed_time.h), the mark of an incomplete version, and those of a version that is a
// copy of one in another repository.
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

/// The progress of a copy that an open version receives.
struct CopyMark {
  VersionNumber base{};       ///< The version that the copy started as a clone of; 0 for none.
  std::uint64_t changes = 0;  ///< Changes of the copy that are durable.
  bool operator==(const CopyMark&) const = default;
};

/// Return the attributes' values (docs/FORMAT.md §7). `number` is the version that has them.
[[nodiscard]] std::string encode_origin(VersionNumber number, const VersionOrigin& origin);
/// `problems`: see VersionInfo::problems.
[[nodiscard]] std::string encode_incomplete(VersionNumber number, std::uint64_t problems);
/// Returns the value while the version receives the copy, so that no seal but the copier's makes it
/// count as one.
[[nodiscard]] std::string encode_receiving(VersionNumber number, const VersionOrigin& origin);
[[nodiscard]] std::string encode_copy_mark(VersionNumber number, const CopyMark& mark);

/// Returns the origin in the attributes of a version's root; nullopt if there is none, if it is not
/// valid or not complete, or if it belongs to the version that this one was cloned from.
[[nodiscard]] std::optional<VersionOrigin> origin_of(VersionNumber number, const Xattrs& of_root);
/// Returns the origin, `whole`, of a version that still receives the copy, else as origin_of().
[[nodiscard]] std::optional<VersionOrigin> receiving_origin_of(VersionNumber number,
                                                               const Xattrs& of_root);
/// Returns the mark, as origin_of().
[[nodiscard]] std::optional<CopyMark> copy_mark_of(VersionNumber number, const Xattrs& of_root);

/// Returns the problems of an incomplete version; 0 without a valid mark of this version.
[[nodiscard]] std::uint64_t problems_of(VersionNumber number, const Xattrs& of_root);

/// Marks a version whose root has these attributes as incomplete, if it has no mark yet.
void mark_incomplete(Xattrs& of_root, VersionNumber number);

/// Gives a version the mark that its root inherited from the version `base`, if there is one.
void inherit_incomplete(Xattrs& of_root, VersionNumber base, VersionNumber number);

/// Returns whether only Varve sees this attribute of a version's root.
[[nodiscard]] bool is_hidden_attribute(std::string_view name);
/// Removes the attributes that only Varve sees.
void hide_own_attributes(Xattrs& of_root);

}  // namespace varve::catalog
