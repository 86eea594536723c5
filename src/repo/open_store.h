// SPDX-License-Identifier: Apache-2.0
// Stores directories and streams as versions of a repository. `files` is the repository's file
// system, for the states of the source's files.
#pragma once

#include <functional>
#include <string>

#include "varve/options.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::io {
class FileSystem;
}  // namespace varve::io

namespace varve::repo {

class SourceMemory;

/// Returns the series' open version if the version has the requested name, or if an interrupted
/// store of the same source left the version; otherwise opens a new version with `root`. Creates
/// the series if needed.
/// Errors: as for Repository::open_version().
[[nodiscard]] Result<VersionInfo> open_or_continue(Repository& repository, io::FileSystem& files,
                                                   const StoreRequest& request,
                                                   SourceMemory& memory, const NewFile& root);

/// As Repository::store_version().
[[nodiscard]] Result<StoredVersion> store_version(
    Repository& repository, io::FileSystem& files, const StoreRequest& request,
    const std::function<bool(const TransferProgress&)>& progress);
/// As Repository::plan_store().
[[nodiscard]] Result<StorePlan> plan_store(
    Repository& repository, io::FileSystem& files, const StoreRequest& request,
    const std::function<void(StoreChange change, const std::string& path)>& changed,
    const std::function<bool(const TransferProgress&)>& progress);
/// As Repository::store_stream().
[[nodiscard]] Result<StoredVersion> store_stream(
    Repository& repository, io::FileSystem& files, const StreamRequest& request, int fd,
    const std::function<bool(const TransferProgress&)>& progress);

/// Returns StoredVersion::keep_states for the states of a stored version; empty without states.
[[nodiscard]] std::function<void(const VersionInfo& sealed)> keeper_of(Repository& repository,
                                                                       io::FileSystem& files,
                                                                       const SourceMemory& memory);

}  // namespace varve::repo
