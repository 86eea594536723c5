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
  RepositoryParameters parameters;
  /// True if `features_required` has the name `pool`: a series or the default for new series may
  /// have other settings than those that every Varve knows.
  bool needs_pool = false;
  /// True if `features_required` has the name `pool-aliases`: the pool may have aliases.
  bool needs_aliases = false;
  /// Lines with keys that this program does not know. They are kept when the file is written again.
  std::string information;
};

[[nodiscard]] std::string encode_superblock(const Superblock& superblock);
/// Decodes a superblock. Checks the form of every field and the compression, but not the chunker
/// and its sizes: ingest::read_superblock() checks those too.
/// Errors: kCorrupt (truncated, checksum, malformed); kUnsupported (newer version, unknown profile,
/// feature or codec). The message tells the user what to do.
[[nodiscard]] Result<Superblock> decode_superblock(std::string_view text);

/// Returns the error of a superblock whose parameters are refused with `error`: kUnsupported stays,
/// any other code becomes kCorrupt. The message tells the user what to do.
[[nodiscard]] Error superblock_error(const Error& error);

}  // namespace varve::format
