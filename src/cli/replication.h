// SPDX-License-Identifier: Apache-2.0
// The parts of commands that have to do with object stores.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/store_waiting.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::cli {

/// The options that say how to reach an object store.
struct PlaceOptions {
  StorePlace place{};
  std::string credentials_command{};
  std::string cache_size{};
  std::string staging_size{};
};
/// Adds --endpoint, --region, --credentials-command, --cache-size and --staging-size.
void add_store_options(Command& command, PlaceOptions& options);
/// Takes the sizes into the place. Errors: usage errors.
[[nodiscard]] Result<void> take_sizes(PlaceOptions& options);
/// Puts --credentials-command into the environment, where the access to stores looks for it.
void put_into_environment(const PlaceOptions& options);

/// Adds --no-wait.
void add_no_wait_flag(Command& command, bool& value);

/// Returns a sentence for a command that would seal a version which is sealed already: perhaps only
/// its upload was interrupted. Empty for a repository that uploads nothing.
[[nodiscard]] std::string advice_on_upload(const std::string& named);

/// Waits until the object store of a repository, given by its folder or a mount of it, has a sealed
/// version. Replicates it itself if no other process has the repository open. Returns at once for
/// an open version or a local repository, and if no wait is wanted.
/// Errors: kNotFound without the version; kInterrupted; those of Repository::open() and close().
[[nodiscard]] Result<void> wait_for_replication(const std::string& named,
                                                const VersionInfo& version,
                                                const StoreWaits& waits);

/// Waits until the object store has the changes of varve::unreplicated_changes(). Errors: as
/// wait_for_replication().
[[nodiscard]] Result<void> wait_for_changes(const std::string& named, const StoreWaits& waits);

/// Returns "; until then, the former keys …" if the object store of the repository lacks a change
/// of its keys, otherwise "". No part of this process may have the repository open.
[[nodiscard]] std::string note_on_keys(const std::string& folder);

}  // namespace varve::cli
