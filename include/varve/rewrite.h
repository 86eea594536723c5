// SPDX-License-Identifier: Apache-2.0
// The rewriting policies of a series whose versions use the pool, and their effects on a version.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "varve/result.h"

namespace varve {

/// Which duplicates a series stores again in the pool, so that its newest version reads fewer
/// containers. The values are stored.
enum class Rewrite : std::uint8_t {
  kNone = 0,  ///< None.
  kHar = 1,   ///< Those in containers that the newest version uses little (Fu et al., ATC'14 §3).
  kCap = 2,   ///< All but those in the few containers that a segment uses most (FAST'13).
  kCbr = 3,   ///< Those in containers that the next 20 MB use little (Kaczmarek, SYSTOR'12).
  kHarCap = 4,  ///< First kHar; then kCap about the chunks that it kept.
  kHarCbr = 5,  ///< First kHar; then kCbr about the chunks that it kept.
};

/// Returns the policy's name, such as "har+cap".
[[nodiscard]] std::string_view rewrite_name(Rewrite rewrite);
/// Returns the names of all policies, as a list for messages and help texts.
[[nodiscard]] std::string rewrite_names();
/// Returns the policy with a name.
/// Errors: kInvalid for another name; the message lists the names.
[[nodiscard]] Result<Rewrite> parse_rewrite(std::string_view name);
/// Checks that this build of libvarve has the policy.
/// Errors: kUnsupported.
[[nodiscard]] Result<void> check_rewrite(Rewrite rewrite);

/// The decisions about the pool while a version was written. They concern the data that was
/// written and cut into chunks: a file that a clone has unchanged counts nowhere. Each occurrence
/// of a chunk counts, also in files that were changed or removed before the seal. All bytes are
/// raw.
struct RewriteCounts {
  /// Chunks that were found in the pool and became references to the copy there.
  std::uint64_t kept_chunks = 0;
  std::uint64_t kept_bytes = 0;
  /// Chunks that were found in the pool, but that the rewriting policy had stored again.
  std::uint64_t rewritten_chunks = 0;
  std::uint64_t rewritten_bytes = 0;
  /// With the placement lineage+pool: chunks stored in the pool because another series has them.
  std::uint64_t promoted_chunks = 0;
  std::uint64_t promoted_bytes = 0;
  /// Containers that the newest version before used little, and whose chunks HAR had stored again.
  /// 0 for the policies without HAR.
  std::uint64_t sparse_containers = 0;
  bool operator==(const RewriteCounts&) const = default;
};

/// Number of containers by utilisation, the part of a container's raw bytes that a version refers
/// to. Entry i counts those from i·10 % to below (i + 1)·10 %, the last one also those of 100 %.
using UtilisationHistogram = std::array<std::uint64_t, 10>;

/// A sealed version's use of the pool.
struct PoolUsage {
  /// Recorded by the seal; nullopt if the version had nothing to do with the pool, or if the
  /// catalog was rebuilt since.
  std::optional<RewriteCounts> counts;
  std::uint64_t containers = 0;        ///< Containers with chunks of the version, as of now.
  std::uint64_t referenced_bytes = 0;  ///< Raw bytes of these chunks, each counted once.
  UtilisationHistogram utilisation{};  ///< The containers by utilisation.
};

}  // namespace varve
