// SPDX-License-Identifier: Apache-2.0
// Runs: immutable files with entries of the index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/id_runs.h"
#include "index/run_format.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::index {

/// The folder of a series' runs.
/// Lifetime: `files` must outlive all users, but not their runs.
struct RunFolder {
  io::FileSystem* files = nullptr;
  std::string directory;
  SeriesId series{};
  std::function<std::string(std::uint32_t number)> name_of;  ///< Name of a run's file.

  [[nodiscard]] std::string path_of(std::uint32_t number) const {
    return directory + "/" + name_of(number);
  }
};

class BlockCache;

/// An open run. Immutable: several threads may read it.
class IndexRun {
 public:
  /// Opens a run and verifies the header and the set of chunk ids, but no entry.
  /// Errors: kNotFound; kCorrupt for damage, or for a run different from `expected`.
  [[nodiscard]] static Result<std::unique_ptr<IndexRun>> open(const RunFolder& folder,
                                                              const RunRef& expected);

  /// Returns the id of the run's entry for the tag.
  /// Errors: kCorrupt if a block is damaged; kIo.
  [[nodiscard]] Result<std::optional<ChunkId>> find(const Tag& tag, BlockCache& cache) const;
  /// Returns the id as find(), without the run's filters, from blocks read past the cache. For
  /// callers with the filters in memory.
  /// Errors: as find().
  [[nodiscard]] Result<std::optional<ChunkId>> find_entry(const Tag& tag) const;
  /// Reads one block past the cache, and verifies the block.
  /// Errors: as find().
  [[nodiscard]] Result<void> read_block(std::uint64_t number, Block& block) const;
  /// Reads and verifies all blocks.
  /// Errors: as find().
  [[nodiscard]] Result<void> verify() const;

  /// The chunks added to the run. The run has an entry for each chunk, except for duplicate
  /// contents and for chunks with an unreadable fingerprint.
  [[nodiscard]] const base::IdRuns& covered() const { return covered_; }
  [[nodiscard]] const RunHeader& header() const { return header_; }
  [[nodiscard]] const RunRef& ref() const { return ref_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  IndexRun() = default;
  /// Searches the tag in the blocks returned by `get`.
  template <typename Get>
  [[nodiscard]] Result<std::optional<ChunkId>> search(const Tag& tag, Get&& get) const;

  std::unique_ptr<io::File> file_;
  std::string path_;
  RunHeader header_;
  RunRef ref_;
  base::IdRuns covered_;
};

/// Keeps the most recently used blocks of runs, within a budget. Not thread-safe.
class BlockCache {
 public:
  explicit BlockCache(std::size_t bytes_max) : blocks_max_(bytes_max / kBytesPerBlock + 2) {}
  /// Returns a verified block of a run.
  /// Lifetime: until the next call.
  /// Errors: as IndexRun::find().
  [[nodiscard]] Result<std::span<const std::byte, kBlockBytes>> get(const IndexRun& run,
                                                                    std::uint64_t number);
  [[nodiscard]] std::uint64_t blocks_read() const { return blocks_read_; }
  void clear();

 private:
  // A block, its node of the list, and its slot of the map.
  static constexpr std::size_t kBytesPerBlock = kBlockBytes + 128;
  struct Kept {
    std::uint64_t key = 0;
    Block block{};
  };
  const std::size_t blocks_max_;
  std::list<Kept> blocks_;  // Most recently used first.
  std::unordered_map<std::uint64_t, std::list<Kept>::iterator> place_of_;
  std::uint64_t blocks_read_ = 0;
};

/// Reads the entries of a run in ascending order, past the cache. Not thread-safe.
/// Lifetime: the run must outlive the scanner.
class RunScanner {
 public:
  explicit RunScanner(const IndexRun& run) : run_(run) {}
  /// Returns the next entry; an empty entry after the last.
  /// Errors: as IndexRun::find().
  [[nodiscard]] Result<Entry> next();

 private:
  const IndexRun& run_;
  Block block_{};
  std::uint64_t bucket_ = 0;
  std::size_t position_ = kBlockEntries;
};

}  // namespace varve::index
