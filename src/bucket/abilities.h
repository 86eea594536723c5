// SPDX-License-Identifier: Apache-2.0
// The abilities of a store, found by trying the operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bucket/bucket.h"
#include "varve/object_lock.h"
#include "varve/result.h"

namespace varve::bucket {

/// A store's handling of PutCondition::kIfAbsent.
enum class Conditions : std::uint8_t {
  kHonoured,  ///< Exactly one of several writers creates the object.
  kIgnored,   ///< The last writer replaces the object: names must contain their writer.
  kRefused,   ///< A put() with kIfAbsent fails with kUnsupported.
};

/// Returns "honoured", "ignored" or "refused".
[[nodiscard]] std::string_view name_of(Conditions conditions);

struct Abilities {
  Conditions conditions = Conditions::kHonoured;
  bool copies_ranges = false;   ///< copy_prefix() works.
  bool lists_at_once = false;   ///< list() showed each object right after its put() or remove().
  bool removes = false;         ///< The credentials may remove objects.
  bool keeps_versions = false;  ///< A removed object stays in the store as an older version.
  /// A list shows the ETag of the answer to a put(); nullopt: not tried.
  std::optional<bool> lists_etags{};
  /// A locked object cannot be removed, and its lock can be extended; nullopt: not tried.
  std::optional<bool> locks{};

  bool operator==(const Abilities&) const = default;
};

/// Clients of a store, for races to create an object.
struct Races {
  /// Clients with separate connections. Empty: kRaceClients threads share a client.
  std::vector<Bucket*> clients{};
  int races = 1;
};
/// A store without an atomic condition lets two clients create an object, but only in some races.
/// docs/decisions/160.
inline constexpr std::size_t kRaceClients = 8;
inline constexpr int kRaces = 30;

/// Tries the operations of a store with small objects below `prefix`, and removes the objects if
/// permitted. The objects have random names, and no other program may use the prefix. Conditions
/// are honoured if each race has a single winner.
/// Errors: errors of Bucket; kCorrupt if the store returned other bytes than written.
[[nodiscard]] Result<Abilities> probe_abilities(Bucket& bucket, const std::string& prefix,
                                                const Races& races = {});

/// Tries whether the store locks objects, with one small object below `prefix` that stays locked
/// for two days. Returns an empty text on success, and otherwise the reason of the failure with
/// advice. Errors: transient errors of Bucket; kCorrupt.
[[nodiscard]] Result<std::string> try_lock(Bucket& bucket, const std::string& prefix, LockMode mode,
                                           std::int64_t local_seconds);

/// The result of a folder's last probe of its store.
struct ProbeRecord {
  Abilities abilities{};
  std::int64_t seconds = 0;        ///< The time of the probe, in seconds since 1970.
  std::int64_t clock_ahead_s = 0;  ///< The store's clock minus the local clock, in seconds.
  std::int64_t raced_s = 0;        ///< The time of the last kRaces races; 0: never.

  bool operator==(const ProbeRecord&) const = default;
};
/// Returns the text of a record. docs/FORMAT.md §16.
[[nodiscard]] std::string encode_probe(const ProbeRecord& record);
/// Decodes a record. Returns nullopt for a text not encoded by any version of encode_probe().
[[nodiscard]] std::optional<ProbeRecord> decode_probe(std::string_view text);

/// An ability as a table entry.
struct AbilityText {
  std::string name{};   ///< Such as "copies ranges".
  std::string value{};  ///< Such as "yes".

  bool operator==(const AbilityText&) const = default;
};
/// Returns all abilities in a fixed order.
[[nodiscard]] std::vector<AbilityText> texts_of(const Abilities& abilities);
/// Returns a sentence for each changed ability. An untried ability counts as unchanged.
[[nodiscard]] std::vector<std::string> differences(const Abilities& before, const Abilities& now);

}  // namespace varve::bucket
