// SPDX-License-Identifier: Apache-2.0
// The parts of commands for object stores.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/store_waiting.h"
#include "varve/replication.h"
#include "varve/result.h"

namespace varve::cli {

/// The options for the access to an object store.
struct PlaceOptions {
  StorePlace place{};
  std::string credentials_command{};
  std::string cache_size{};
  std::string staging_size{};
};
/// Adds --endpoint, --region, --credentials-command, --cache-size and --staging-size.
void add_store_options(Command& command, PlaceOptions& options);
/// Parses the sizes into the place. Errors: kUsage.
[[nodiscard]] Result<void> take_sizes(PlaceOptions& options);
/// Puts --credentials-command into the environment, where the access to stores looks for the
/// command.
void put_into_environment(const PlaceOptions& options);

/// Adds --no-wait.
void add_no_wait_flag(Command& command, bool& value);

/// Returns advice for a command that would seal a sealed version: perhaps only the upload of the
/// version was interrupted. Empty for a repository without uploads.
[[nodiscard]] std::string advice_on_upload(const std::string& named);

/// Waits until the object store of a repository, given by its folder or a mount, has a sealed
/// version. Replicates the version in this process if no other process has the repository open.
/// Returns at once for an open version or a local repository, and if no wait is wanted.
/// Errors: kNotFound without the version; kInterrupted; the errors of Repository::open() and
/// close(); the error of another process whose attempt since `since` failed for a lasting reason.
[[nodiscard]] Result<void> wait_for_replication(const std::string& named,
                                                const VersionInfo& version, const StoreWaits& waits,
                                                const Timestamp& since);

/// Waits until the object store has the changes of RemoteFolder::unreplicated_changes(). Errors: as
/// wait_for_replication().
[[nodiscard]] Result<void> wait_for_changes(const std::string& named, const StoreWaits& waits);

/// Returns "; until then, the former keys …" if the object store of the repository lacks a change
/// of the keys, otherwise "". No part of the calling process may have the repository open.
[[nodiscard]] std::string note_on_keys(const std::string& folder);

}  // namespace varve::cli
