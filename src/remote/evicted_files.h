// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "varve/result.h"

namespace varve::remote {

struct BucketConfig;
class FolderState;
class LocalData;

/// The data files of the writer's folder, some of which may be only in the object store.
/// Thread-safe.
class EvictedFiles {
 public:
  /// Lifetime: the references outlive the object.
  EvictedFiles(LocalData& data, FolderState& state, const BucketConfig& config, std::string root)
      : data_(data), state_(state), config_(config), root_(std::move(root)) {}

  /// Returns whether a data file, by its path, is only in the store.
  [[nodiscard]] Result<bool> is_evicted(const std::string& path);
  /// Return the limits of cached bytes in the folder: of files, and of blocks of evicted files.
  [[nodiscard]] std::uint64_t cached_file_bytes() const;
  [[nodiscard]] std::uint64_t cached_block_bytes() const;
  /// Numbers in the folder's state, as FolderState::number().
  [[nodiscard]] Result<std::uint64_t> number(std::string_view purpose);
  [[nodiscard]] Result<void> set_number(std::string_view purpose, std::uint64_t value);

 private:
  LocalData& data_;
  FolderState& state_;
  const BucketConfig& config_;
  const std::string root_;
};

}  // namespace varve::remote
