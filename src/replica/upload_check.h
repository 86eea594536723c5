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
#include <utility>
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

/// Containers that a catalog has, of one store each.
using ContainerKeys = std::vector<std::pair<StoreId, ContainerNumber>>;
/// The containers of the files to upload.
struct ContainersToUpload {
  std::map<std::string, FileContainers> files{};
  std::uint64_t records = 0;  ///< Records of containers that were read.
};
/// Returns the containers that are beyond the extents which `known` has of the files, and all
/// containers of the files in `again`. Reads the records of all containers of their stores or, if
/// given, of those in `changed`: all that the catalog got since `known` must be among them.
[[nodiscard]] Result<ContainersToUpload> containers_to_upload(const meta::Txn& catalog,
                                                              const std::vector<ReplicaFile>& files,
                                                              const ObjectMap& known,
                                                              const std::set<std::string>& again,
                                                              const ContainerKeys* changed);

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
