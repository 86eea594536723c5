// SPDX-License-Identifier: Apache-2.0
// The lease: which folder writes to a repository in an object store. It is advice for people, and
// no program decides by it. docs/FORMAT.md §15.5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "replica/replica_state.h"
#include "varve/result.h"

namespace varve::replica {

struct Lease {
  std::string host{};
  std::string user{};
  std::string folder{};      ///< The repository's folder on that host.
  std::int64_t since_s = 0;  ///< Seconds since 1970, by that host's clock.

  bool operator==(const Lease&) const = default;
};

/// Returns the lease of this process for a folder.
[[nodiscard]] Lease lease_of_this_machine(const std::string& folder, std::int64_t now_s);
/// Returns one line about a lease, without control characters: "varve on host A in /b since …".
[[nodiscard]] std::string lease_text(const Lease& lease);

/// Encodes a lease. `keys` encrypt that of an encrypted repository. Errors: kIo without randomness.
[[nodiscard]] Result<std::string> encode_lease(const Lease& lease, const crypto::KeyRing* keys);
/// Errors: kCorrupt, also for a lease that other keys wrote.
[[nodiscard]] Result<Lease> decode_lease(std::string_view text, const crypto::KeyRing* keys);

/// Replaces the repository's lease. Errors: those of the bucket.
[[nodiscard]] Result<void> write_lease(bucket::Bucket& bucket, const std::string& repository_id,
                                       const Lease& lease, const crypto::KeyRing* keys);
/// Returns the lease; nullopt if there is none that can be read.
[[nodiscard]] std::optional<Lease> read_lease(bucket::Bucket& bucket,
                                              const std::string& repository_id,
                                              const crypto::KeyRing* keys);

/// Keeps the lease of the store in the folder's state, as the store has it. Errors: those of the
/// bucket and of the state; a missing lease is none.
[[nodiscard]] Result<void> keep_lease(bucket::Bucket& bucket, const std::string& repository_id,
                                      ReplicaState& state);
/// Notes that this folder has written the lease.
[[nodiscard]] Result<void> keep_own_lease(ReplicaState& state, const Lease& lease);
/// Returns the lease that the folder keeps; nullopt if there is none that can be read.
[[nodiscard]] std::optional<Lease> kept_lease(const ReplicaState& state,
                                              const crypto::KeyRing* keys);

}  // namespace varve::replica
