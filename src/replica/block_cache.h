// SPDX-License-Identifier: Apache-2.0
// Blocks of objects that were read, on the local disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "io/file_system.h"

namespace varve::replica {

/// Length of a block of an object, in bytes; the last block of an object may be shorter.
inline constexpr std::uint64_t kCacheBlockBytes = std::uint64_t{1} << 20;
/// Length of a cell, in bytes; the last cell of an object may be shorter. A block has 8 cells. The
/// cache can have some of a block's cells without the others.
inline constexpr std::uint64_t kCacheCellBytes = std::uint64_t{128} << 10;
inline constexpr unsigned kCellsPerBlock = kCacheBlockBytes / kCacheCellBytes;
/// Cells of a block: bit i stands for the cell at i * kCacheCellBytes of it.
using CellSet = std::uint8_t;

/// Some cells of a block that follow each other.
struct PartOfBlock {
  std::size_t block_bytes = 0;  ///< The length of the block.
  unsigned first_cell = 0;      ///< The first of these cells, by its number in the block.
  std::span<const std::byte> bytes{};
};

/// Keeps cells in a folder, those of one block in one file, and evicts the blocks that were used
/// least recently. Objects never change, so a cell never becomes wrong. A checksum shows cells that
/// a crash left incomplete; they count as missing. Several processes may share the folder; their
/// files together exceed the limit by at most an eighth for each of them. On a nearly full disk,
/// new blocks take the place of others. Errors of the disk cost only speed. Thread-safe.
class BlockCache {
 public:
  /// Lifetime: `files` outlives the cache.
  BlockCache(io::FileSystem& files, std::string folder, std::uint64_t bytes_max)
      : files_(files), folder_(std::move(folder)), bytes_max_(bytes_max) {}

  /// Reads the cells of a block that are wanted and that the cache has into their places in `room`,
  /// which has the length of the block. Returns those cells.
  [[nodiscard]] CellSet read(const std::string& object, std::uint64_t block, CellSet wanted,
                             std::span<std::byte> room);
  /// Returns the cells that the file of a block of this length claims to have, without reading
  /// them.
  [[nodiscard]] CellSet present(const std::string& object, std::uint64_t block, std::size_t bytes);
  /// Adds these cells of a block, all of which `part` has. Other bytes of it are not used.
  void add(const std::string& object, std::uint64_t block, CellSet cells, const PartOfBlock& part);
  /// Removes a block.
  void remove(const std::string& object, std::uint64_t block);
  /// Removes the blocks that were used least recently, with at least so many bytes. Returns their
  /// bytes: fewer if the cache has no more.
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
  /// Removes blocks from a nearly full disk. Returns whether it has room for `bytes` more.
  [[nodiscard]] bool make_room(std::uint64_t bytes);
  /// Forgets a block whose file is gone. Returns the next one.
  Blocks::iterator forget(Blocks::iterator known);
  /// Removes the block that was used least recently. Returns its bytes.
  std::uint64_t evict_one();

  io::FileSystem& files_;
  const std::string folder_;
  const std::uint64_t bytes_max_;

  std::mutex mutex_;  // Guards the members below.
  bool loaded_ = false;
  std::list<std::string> used_;  // The last used one first.
  Blocks known_;
  std::uint64_t bytes_ = 0;
  std::uint64_t added_ = 0;  // Bytes added since the folder was scanned.
  std::uint64_t next_temporary_ = 0;
};

}  // namespace varve::replica
