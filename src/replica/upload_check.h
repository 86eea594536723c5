// SPDX-License-Identifier: Apache-2.0
// Compares containers with their checksums while they are uploaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "format/container_keys.h"
#include "format/container_record.h"
#include "meta/lmdb.h"
#include "replica/changes.h"
#include "replica/replica_files.h"
#include "varve/result.h"

namespace varve::replica {

/// The containers of one data file, by their offsets.
struct FileContainers {
  StoreId store{};
  std::vector<format::ContainerRecord> containers{};
};

/// Returns the containers that are beyond the extents which `known` has of the files, and all
/// containers of the files in `again`. Reads the records of all containers of their stores.
[[nodiscard]] Result<std::map<std::string, FileContainers>> containers_to_upload(
    const meta::Txn& catalog, const std::vector<ReplicaFile>& files, const ObjectMap& known,
    const std::set<std::string>& again);

/// Returns where an extent that begins at `offset` of a file ends: behind a container, if one ends
/// within `bytes_max`, and never inside one.
[[nodiscard]] std::uint64_t extent_end(const FileContainers* file, std::uint64_t offset,
                                       std::uint64_t file_bytes, std::uint64_t bytes_max);

/// Compares the containers in an extent, which begins at `offset` of a file, with their checksums:
/// every byte of a container is covered. `keys` are null in a plain repository. Decompresses
/// nothing. Returns the first fault; nullopt if there is none.
[[nodiscard]] std::optional<std::string> fault_in_extent(const FileContainers& file,
                                                         std::uint64_t offset,
                                                         std::span<const std::byte> bytes,
                                                         const format::ContainerKeys* keys);

}  // namespace varve::replica
