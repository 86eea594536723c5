// SPDX-License-Identifier: Apache-2.0
// The abilities of a store, found by trying them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bucket/bucket.h"
#include "varve/result.h"

namespace varve::bucket {

/// The answer of a store to PutCondition::kIfAbsent.
enum class Conditions : std::uint8_t {
  kHonoured,  ///< Exactly one of several writers creates the object.
  kIgnored,   ///< The last writer replaces the object: names must carry their writer.
  kRefused,   ///< Such a put() fails with kUnsupported.
};

/// Returns "honoured", "ignored" or "refused".
[[nodiscard]] std::string_view name_of(Conditions conditions);

struct Abilities {
  Conditions conditions = Conditions::kHonoured;
  bool copies_ranges = false;  ///< copy_prefix() works.
  bool lists_at_once = false;  ///< list() showed each object right after it was written or removed.
  bool removes = false;        ///< The credentials may remove objects.

  bool operator==(const Abilities&) const = default;
};

/// Tries what the store does, with small objects below `prefix` that no other program uses, and
/// removes them if it may. The objects have random names. A race of kProbeRacers writers decides
/// whether conditions are honoured. Errors: those of Bucket; kCorrupt if the store returned other
/// bytes than those written.
[[nodiscard]] Result<Abilities> probe_abilities(Bucket& bucket, const std::string& prefix);

inline constexpr int kProbeRacers = 4;

}  // namespace varve::bucket
