// SPDX-License-Identifier: Apache-2.0
// The last failure of a replication in the background, for commands of other processes.
#pragma once

#include <optional>

#include "remote/replica_state.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::remote {

/// Notes the error of a replication that failed at `now`. Logs errors.
void note_failure(ReplicaState& state, const Error& error, const Timestamp& now);
/// Removes the note after a successful replication.
[[nodiscard]] Result<void> forget_failure(ReplicaState& state);
/// Returns the noted failure; nullopt without a readable note.
[[nodiscard]] Result<std::optional<ReplicationFailure>> noted_failure(const ReplicaState& state);

}  // namespace varve::remote
