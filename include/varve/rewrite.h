// SPDX-License-Identifier: Apache-2.0
// The rewriting policies of series in the pool, and their effects on a version.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve {

/// Selects the duplicates that a series stores again in the pool, so that its newest version reads
/// fewer containers. The values are stored.
enum class Rewrite : std::uint8_t {
  kNone = 0,  ///< None.
  /// Duplicates in containers little used by the newest version (Fu et al., ATC'14 §3).
  kHar = 1,
  kCap = 2,  ///< All duplicates except in the few containers used most by a segment (FAST'13).
  /// Duplicates in containers little used by the next 20 MB (Kaczmarczyk et al., SYSTOR'12).
  kCbr = 3,
  kHarCap = 4,  ///< First kHar; then kCap for the chunks kept by kHar.
  kHarCbr = 5,  ///< First kHar; then kCbr for the chunks kept by kHar.
};

/// Returns the policy's name, such as "har+cap".
[[nodiscard]] std::string_view rewrite_name(Rewrite rewrite);
/// Returns the names of all policies, as a list for messages and help texts.
[[nodiscard]] std::string rewrite_names();
/// Returns the policy with a name.
/// Errors: kInvalid for another name; the message lists the names.
[[nodiscard]] Result<Rewrite> parse_rewrite(std::string_view name);
/// Checks that libvarve was built with the policy.
/// Errors: kUnsupported.
[[nodiscard]] Result<void> check_rewrite(Rewrite rewrite);

/// The decisions about the pool while a version was written. The counts cover data written and cut
/// into chunks: unchanged files of a clone do not count. Each occurrence of a chunk counts, also in
/// files changed or removed before the seal. All bytes are raw.
struct RewriteCounts {
  /// Chunks found in the pool and recorded as references to the copy there.
  std::uint64_t kept_chunks = 0;
  std::uint64_t kept_bytes = 0;
  /// Chunks found in the pool, but stored again by decision of the rewriting policy.
  std::uint64_t rewritten_chunks = 0;
  std::uint64_t rewritten_bytes = 0;
  /// With the placement lineage+pool: chunks stored in the pool because another series has the
  /// chunk.
  std::uint64_t promoted_chunks = 0;
  std::uint64_t promoted_bytes = 0;
  /// Containers little used by the preceding newest version, whose chunks HAR had stored again. 0
  /// for the policies without HAR.
  std::uint64_t sparse_containers = 0;
  bool operator==(const RewriteCounts&) const = default;
};

/// Number of containers by utilisation, the part of a container's raw bytes to which a version
/// refers. Entry i counts utilisations from i·10 % to below (i + 1)·10 %; the last entry includes
/// 100 %.
using UtilisationHistogram = std::array<std::uint64_t, 10>;

/// A sealed version's use of the pool.
struct PoolUsage {
  /// Recorded by the seal; nullopt if the version had nothing to do with the pool, or if the
  /// catalog was rebuilt since.
  std::optional<RewriteCounts> counts;
  std::uint64_t containers = 0;        ///< Containers with chunks of the version, as of now.
  std::uint64_t referenced_bytes = 0;  ///< Raw bytes of the version's chunks, each counted once.
  UtilisationHistogram utilisation{};  ///< The containers by utilisation.
};

}  // namespace varve
