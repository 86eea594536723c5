// SPDX-License-Identifier: Apache-2.0
// A cache of blocks of objects on the local disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "io/file_system.h"

namespace varve::remote {

/// Length of a block of an object, in bytes; the last block of an object may be shorter.
inline constexpr std::uint64_t kCacheBlockBytes = std::uint64_t{1} << 20;
/// Length of a cell, in bytes; the last cell of an object may be shorter. A block has 8 cells. The
/// cache may hold only some cells of a block.
inline constexpr std::uint64_t kCacheCellBytes = std::uint64_t{128} << 10;
inline constexpr unsigned kCellsPerBlock = kCacheBlockBytes / kCacheCellBytes;
/// A set of cells of a block: bit i stands for the cell at offset i * kCacheCellBytes.
using CellSet = std::uint8_t;

/// Consecutive cells of a block.
struct PartOfBlock {
  std::size_t block_bytes = 0;  ///< Length of the block.
  unsigned first_cell = 0;      ///< Number of the first cell within the block.
  std::span<const std::byte> bytes{};
};

/// Keeps cells in a folder, the cells of a block in one file, and evicts the least recently used
/// blocks. Objects never change, so a cell never becomes stale. A cell left incomplete by a crash
/// fails its checksum and counts as missing. Several processes may share the folder; together,
/// their files exceed the limit by at most an eighth per process. On a nearly full disk, a new
/// block replaces old blocks. Errors of the disk only make reads slower. Thread-safe.
class BlockCache {
 public:
  /// Lifetime: `files` outlives the cache.
  BlockCache(io::FileSystem& files, std::string folder, std::uint64_t bytes_max)
      : files_(files), folder_(std::move(folder)), bytes_max_(bytes_max) {}

  /// Reads the `wanted` cells of a block, as far as the cache has the cells, to their places in
  /// `room`. `room` has the length of the block. Returns the set of cells read.
  [[nodiscard]] CellSet read(const std::string& object, std::uint64_t block, CellSet wanted,
                             std::span<std::byte> room);
  /// Returns the cells that the file of a block of `bytes` bytes claims to have. Reads no cell.
  [[nodiscard]] CellSet present(const std::string& object, std::uint64_t block, std::size_t bytes);
  /// Adds the `cells` of a block. `part` contains all of `cells`; its remaining bytes are ignored.
  void add(const std::string& object, std::uint64_t block, CellSet cells, const PartOfBlock& part);
  /// Removes a block.
  void remove(const std::string& object, std::uint64_t block);
  /// Removes least recently used blocks until at least `bytes` bytes are freed. Returns the number
  /// of bytes freed: fewer if the cache is then empty.
  std::uint64_t shrink(std::uint64_t bytes);
  /// Removes all blocks.
  void clear();

 private:
  struct Known {
    std::uint64_t bytes = 0;
    std::list<std::string>::iterator at;
  };
  using Blocks = std::map<std::string, Known>;

  void load();
  void scan();
  void use(const std::string& name, std::uint64_t bytes);
  /// Removes blocks from a nearly full disk. Returns whether the disk has room for `bytes` more.
  [[nodiscard]] bool make_room(std::uint64_t bytes);
  /// Drops the record of a block whose file is gone. Returns the next block.
  Blocks::iterator forget(Blocks::iterator known);
  /// Removes the least recently used block. Returns its length in bytes.
  std::uint64_t evict_one();

  io::FileSystem& files_;
  const std::string folder_;
  const std::uint64_t bytes_max_;

  std::mutex mutex_;  // Guards the members below.
  bool loaded_ = false;
  std::list<std::string> used_;  // The most recently used block first.
  Blocks known_;
  std::uint64_t bytes_ = 0;
  std::uint64_t added_ = 0;  // Bytes added since the folder was scanned.
  std::uint64_t next_temporary_ = 0;
};

}  // namespace varve::remote
