// SPDX-License-Identifier: Apache-2.0
// The file `bucket` of a repository's folder: the object store of the repository.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bucket/bucket.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::remote {

struct BucketConfig {
  std::string place{};      ///< s3://BUCKET/PREFIX.
  bool reads_only = false;  ///< True for an attached folder.
  std::string endpoint{};   ///< URL of the store; if empty, the environment's endpoint.
  std::string region{};     ///< If empty, the environment's region.
  /// Storage class of volumes, such as STANDARD_IA; empty for the store's default.
  std::string volume_class{};
  /// Bytes of store data that the folder keeps on its disk; nullopt for the default.
  std::optional<std::uint64_t> cache_bytes{};
  /// Bytes of data that may wait for upload before writers wait; nullopt for the default.
  std::optional<std::uint64_t> staging_bytes{};

  bool operator==(const BucketConfig&) const = default;
};

/// Bytes of store data kept by default by an attached folder and by a writer's folder.
inline constexpr std::uint64_t kReaderCacheBytes = std::uint64_t{4} << 30;
inline constexpr std::uint64_t kWriterCacheBytes = std::uint64_t{16} << 30;
/// Bytes that may wait for upload by default.
inline constexpr std::uint64_t kStagingBytes = std::uint64_t{64} << 30;
/// Returns the number of bytes of store data that a folder keeps.
[[nodiscard]] std::uint64_t cache_bytes_of(const BucketConfig& config);
/// Return the parts of the number for whole files, and for blocks of evicted files. An attached
/// folder keeps only blocks.
[[nodiscard]] std::uint64_t cached_file_bytes_of(const BucketConfig& config);
[[nodiscard]] std::uint64_t cached_block_bytes_of(const BucketConfig& config);

/// Returns the number of bytes that may wait for upload before writers wait.
[[nodiscard]] std::uint64_t staging_bytes_of(const BucketConfig& config);

/// The name of the file in the repository's folder.
inline constexpr const char* kConfigName = "bucket";

/// The name of the file noting that the folder is to become a repository of an object store.
inline constexpr const char* kConnectingName = "connecting.tmp";
/// Notes that the repository at `root` is to become a repository of an object store. Until
/// write_config(), opening the repository then fails. The caller syncs the folder.
[[nodiscard]] Result<void> note_connecting(io::FileSystem& files, const std::string& root);
/// Removes the note, if there is one. The caller syncs the folder.
[[nodiscard]] Result<void> note_connected(io::FileSystem& files, const std::string& root);
/// Returns whether the note exists and nothing has connected the folder since.
[[nodiscard]] Result<bool> is_connecting(io::FileSystem& files, const std::string& root);

/// Checks that objects of a storage class can be read at once. Errors: kInvalid.
[[nodiscard]] Result<void> check_volume_class(std::string_view storage_class);

[[nodiscard]] std::string encode_config(const BucketConfig& config);
/// Decodes a configuration. Errors: kInvalid.
[[nodiscard]] Result<BucketConfig> decode_config(std::string_view text);
/// Returns the configuration of the repository at `root`, or nullopt for a local repository.
/// Errors: kInvalid; kCorrupt if the file is lost; kNoRepository while is_connecting().
[[nodiscard]] Result<std::optional<BucketConfig>> read_config(io::FileSystem& files,
                                                              const std::string& root);
/// Makes the repository at `root` a repository of the object store, or changes its configuration.
[[nodiscard]] Result<void> write_config(io::FileSystem& files, const std::string& root,
                                        const BucketConfig& config);

/// Opens the object store of a repository. Errors: kInvalid for a wrong configuration.
using BucketOpener =
    std::function<Result<std::unique_ptr<bucket::Bucket>>(const BucketConfig& config)>;

}  // namespace varve::remote
