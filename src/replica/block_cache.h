// SPDX-License-Identifier: Apache-2.0
// Blocks of objects that were read, on the local disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "io/file_system.h"

namespace varve::replica {

/// Length of a block of an object, in bytes; the last block of an object may be shorter.
inline constexpr std::uint64_t kCacheBlockBytes = std::uint64_t{1} << 20;

/// Keeps blocks in a folder, the ones used last, one file each. Objects never change, so a block
/// never becomes wrong. A checksum shows blocks that a crash left incomplete; they count as
/// missing. Several processes may share the folder. Errors of the disk cost only speed.
/// Thread-safe.
class BlockCache {
 public:
  /// Lifetime: `files` outlives the cache.
  BlockCache(io::FileSystem& files, std::string folder, std::uint64_t bytes_max)
      : files_(files), folder_(std::move(folder)), bytes_max_(bytes_max) {}

  /// Returns a block of this length, or nullopt if the cache lacks it.
  [[nodiscard]] std::optional<std::string> find(const std::string& object, std::uint64_t block,
                                                std::size_t bytes);
  /// Adds a block.
  void add(const std::string& object, std::uint64_t block, std::span<const std::byte> bytes);

 private:
  void load();
  void use(const std::string& name, std::uint64_t bytes);
  void evict();

  io::FileSystem& files_;
  const std::string folder_;
  const std::uint64_t bytes_max_;

  std::mutex mutex_;  // Guards the members below.
  bool loaded_ = false;
  std::list<std::string> used_;  // The last used one first.
  struct Known {
    std::uint64_t bytes = 0;
    std::list<std::string>::iterator at;
  };
  std::map<std::string, Known> known_;
  std::uint64_t bytes_ = 0;
  std::uint64_t next_temporary_ = 0;
};

}  // namespace varve::replica
