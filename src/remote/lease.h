// SPDX-License-Identifier: Apache-2.0
// The lease: the folder that writes to a repository in an object store. The lease is advice for
// people; no program decides by the lease. docs/FORMAT.md §15.5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bucket/bucket.h"
#include "crypto/key_ring.h"
#include "remote/replica_state.h"
#include "varve/result.h"

namespace varve::remote {

struct Lease {
  std::string host{};
  std::string user{};
  std::string folder{};      ///< The repository's folder on the host.
  std::int64_t since_s = 0;  ///< Seconds since 1970, by the host's clock.

  bool operator==(const Lease&) const = default;
};

/// Returns the lease of this process for a folder.
[[nodiscard]] Lease lease_of_this_machine(const std::string& folder, std::int64_t now_s);
/// Returns one line about a lease, without control characters: "varve on host A in /b since …".
[[nodiscard]] std::string lease_text(const Lease& lease);

/// Encodes a lease. `keys` encrypt the lease of an encrypted repository. Errors: kIo without
/// randomness.
[[nodiscard]] Result<std::string> encode_lease(const Lease& lease, const crypto::KeyRing* keys);
/// Decodes a lease. Errors: kCorrupt, also for a lease written with other keys.
[[nodiscard]] Result<Lease> decode_lease(std::string_view text, const crypto::KeyRing* keys);

/// Replaces the repository's lease. Errors: errors of the bucket.
[[nodiscard]] Result<void> write_lease(bucket::Bucket& bucket, const std::string& repository_id,
                                       const Lease& lease, const crypto::KeyRing* keys);
/// Returns the lease; nullopt without a readable lease.
[[nodiscard]] std::optional<Lease> read_lease(bucket::Bucket& bucket,
                                              const std::string& repository_id,
                                              const crypto::KeyRing* keys);

/// Copies the store's lease to the folder's state, in stored form. Without a lease in the store,
/// the state stays unchanged. Errors: errors of the bucket and of the state.
[[nodiscard]] Result<void> keep_lease(bucket::Bucket& bucket, const std::string& repository_id,
                                      ReplicaState& state);
/// Notes that the folder has written the lease.
[[nodiscard]] Result<void> keep_own_lease(ReplicaState& state, const Lease& lease);
/// Returns the lease in the folder's state; nullopt without a readable lease.
[[nodiscard]] std::optional<Lease> kept_lease(const ReplicaState& state,
                                              const crypto::KeyRing* keys);

}  // namespace varve::remote
