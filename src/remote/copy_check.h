// SPDX-License-Identifier: Apache-2.0
// Compares a writer's catalog with the copy of the newest head's catalog.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::remote {

class ReplicaState;

/// Opens the catalog of the repository at `root` for reading, without its keys: records stay in
/// their stored form.
[[nodiscard]] Result<meta::Env> open_catalog_without_keys(io::FileSystem& files,
                                                          const std::string& root);

/// Returns the number of records in which the catalog of the repository at `root` differs from the
/// copy of the newest head. Returns nullopt if the catalog has commits without a head, or there is
/// no head. `state` is the state of the folder. Compares all records, and needs no key. Another
/// process may write meanwhile; the calling process must not have the repository open.
/// Errors: kCorrupt if pages are damaged; errors of the disk.
[[nodiscard]] Result<std::optional<std::uint64_t>> differences_from_copy(io::FileSystem& files,
                                                                         const std::string& root,
                                                                         const ReplicaState& state);

}  // namespace varve::remote
