// SPDX-License-Identifier: Apache-2.0
// Verifies the checksums of containers during the upload.
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
#include "remote/changes.h"
#include "remote/replica_files.h"
#include "varve/result.h"

namespace varve::remote {

/// The containers of one data file, by their offsets.
struct FileContainers {
  StoreId store{};
  std::vector<format::ContainerRecord> containers{};
};

/// Containers of a catalog, each with its store.
using ContainerKeys = std::vector<std::pair<StoreId, ContainerNumber>>;
/// The containers of the files to upload.
struct ContainersToUpload {
  std::map<std::string, FileContainers> files{};
  std::uint64_t records = 0;  ///< Records of containers read.
};
/// Returns the containers beyond the extents of the files in `known`, and all containers of the
/// files in `again`. Reads the records of all containers of the files' stores or, if given, only of
/// `changed`. `changed` must contain all containers added to the catalog since `known`.
[[nodiscard]] Result<ContainersToUpload> containers_to_upload(const meta::Txn& catalog,
                                                              const std::vector<ReplicaFile>& files,
                                                              const ObjectMap& known,
                                                              const std::set<std::string>& again,
                                                              const ContainerKeys* changed);

/// Returns the end of an extent that begins at `offset` of a file. The end is the end of the last
/// container within `bytes_max`, if any, and never a place inside a container.
[[nodiscard]] std::uint64_t extent_end(const FileContainers* file, std::uint64_t offset,
                                       std::uint64_t file_bytes, std::uint64_t bytes_max);

/// Verifies the checksums of the containers in an extent, which begins at `offset` of a file. The
/// checksums cover every byte of a container. `keys` are null in a plain repository. Decompresses
/// nothing. Returns the first fault; nullopt without a fault.
[[nodiscard]] std::optional<std::string> fault_in_extent(const FileContainers& file,
                                                         std::uint64_t offset,
                                                         std::span<const std::byte> bytes,
                                                         const format::ContainerKeys* keys);

}  // namespace varve::remote
