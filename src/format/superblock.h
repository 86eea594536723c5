// SPDX-License-Identifier: Apache-2.0
// The superblock `varve.repo`: readable text, `key = value` lines, checksum last.
// docs/FORMAT.md §2.
#pragma once

#include <string>
#include <string_view>

#include "varve/options.h"
#include "varve/result.h"

namespace varve::format {

inline constexpr std::uint32_t kFormatVersion = 1;

struct Superblock {
  std::uint32_t format_version = kFormatVersion;
  std::string repository_id;  ///< 32 hexadecimal digits, random.
  std::string profile = "lineage";
  RepositoryParameters parameters;
  /// Names of features that a reader must know (such as encryption); none exists yet.
  std::string features_required;
};

[[nodiscard]] std::string encode_superblock(const Superblock& superblock);
/// kCorrupt (truncated, checksum, malformed), or kUnsupported (newer version, unknown
/// profile, feature or codec), with a message that says what to do.
[[nodiscard]] Result<Superblock> decode_superblock(std::string_view text);

/// Says in a message what is wrong with parameters given at init.
[[nodiscard]] Result<void> validate_parameters(const RepositoryParameters& parameters);

}  // namespace varve::format
