// SPDX-License-Identifier: Apache-2.0
#include "remote/block_cache.h"

#include <fmt/core.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "store/space_guard.h"

namespace varve::remote {

namespace {

// Format of a file: the set of present cells, the checksum of each of the 8 cells, and the present
// cells in ascending order.
constexpr std::size_t kHeadBytes = 8 + 8 * std::size_t{kCellsPerBlock};
constexpr std::string_view kEnding = ".cells";
// Share of the limit after whose addition the folder is scanned for files of other processes.
constexpr std::uint64_t kScanShare = 8;

using CellTable = std::array<std::byte, kHeadBytes>;

std::string name_of(const std::string& object, std::uint64_t block) {
  const auto hash = XXH3_128bits(object.data(), object.size());
  return fmt::format("{:016x}{:016x}-{:08x}{}", hash.high64, hash.low64, block, kEnding);
}

std::uint64_t sum_of(const std::string& name, unsigned cell, std::span<const std::byte> bytes) {
  const auto seed = XXH3_64bits(name.data(), name.size()) + cell;
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

template <typename Byte>
std::span<Byte> cell_of(std::span<Byte> block, unsigned cell) {
  const std::size_t begin = cell * kCacheCellBytes;
  return block.subspan(begin, std::min<std::size_t>(kCacheCellBytes, block.size() - begin));
}

bool has(CellSet cells, unsigned cell) { return ((cells >> cell) & 1U) != 0; }

// Returns all cells of a block of `block_bytes` bytes.
CellSet cells_of(std::size_t block_bytes) {
  const auto count = (block_bytes + kCacheCellBytes - 1) / kCacheCellBytes;
  return static_cast<CellSet>((1U << count) - 1);
}

// Reads the head of the file of a block. Returns the present cells; none for a bad head.
CellSet read_head(io::File& file, std::size_t block_bytes, CellTable& head) {
  const auto got = file.read_at(0, head);
  if (!got || *got != head.size()) return 0;
  const auto stored = base::load_le<std::uint64_t>(head.data());
  return (stored & ~std::uint64_t{cells_of(block_bytes)}) == 0 ? static_cast<CellSet>(stored) : 0;
}

// Reads wanted cells from a file to their places in `room`. Returns the cells with good checksums.
CellSet read_cells(io::File& file, const std::string& name, CellSet wanted,
                   std::span<std::byte> room) {
  CellTable head;
  const auto present = read_head(file, room.size(), head);
  CellSet found = 0;
  std::uint64_t offset = kHeadBytes;
  for (unsigned cell = 0; cell < kCellsPerBlock; ++cell) {
    if (!has(present, cell)) continue;
    const auto out = cell_of(room, cell);
    if (has(wanted, cell)) {
      const auto read = file.read_at(offset, out);
      const auto sum = base::load_le<std::uint64_t>(head.data() + 8 + 8 * std::size_t{cell});
      if (read && *read == out.size() && sum_of(name, cell, out) == sum) {
        found = static_cast<CellSet>(found | 1U << cell);
      }
    }
    offset += out.size();
  }
  return found;
}

}  // namespace

// Blocks of earlier processes are evicted first.
void BlockCache::load() {
  if (loaded_) return;
  loaded_ = true;
  static_cast<void>(files_.make_directory(folder_));
  const auto names = files_.list(folder_);
  if (!names) return;
  for (const auto& name : *names) {
    // The file of a killed process. If another process is writing the file, that process loses a
    // block.
    if (!name.ends_with(kEnding)) static_cast<void>(files_.remove(folder_ + "/" + name));
  }
  scan();
}

// Adds the files of other processes, and drops records of files removed by other processes.
void BlockCache::scan() {
  added_ = 0;
  const auto names = files_.list(folder_);
  if (!names) return;
  const std::set<std::string> present(names->begin(), names->end());
  for (auto at = known_.begin(); at != known_.end();) {
    if (present.contains(at->first)) {
      ++at;
      continue;
    }
    at = forget(at);
  }
  for (const auto& name : present) {
    if (!name.ends_with(kEnding) || known_.contains(name)) continue;
    const auto bytes = files_.tree_bytes(folder_ + "/" + name);
    if (!bytes) continue;
    used_.push_back(name);
    known_[name] = {*bytes, std::prev(used_.end())};
    bytes_ += *bytes;
  }
}

// Makes a block the most recently used. `bytes`: new file length; 0 keeps the recorded length.
void BlockCache::use(const std::string& name, std::uint64_t bytes) {
  const auto known = known_.find(name);
  if (known == known_.end()) {
    if (bytes == 0) return;
    used_.push_front(name);
    known_[name] = {bytes, used_.begin()};
    bytes_ += bytes;
    return;
  }
  used_.splice(used_.begin(), used_, known->second.at);
  if (bytes == 0) return;
  bytes_ = bytes_ - known->second.bytes + bytes;
  known->second.bytes = bytes;
}

BlockCache::Blocks::iterator BlockCache::forget(Blocks::iterator known) {
  bytes_ -= known->second.bytes;
  used_.erase(known->second.at);
  return known_.erase(known);
}

std::uint64_t BlockCache::evict_one() {
  const auto before = bytes_;
  static_cast<void>(files_.remove(folder_ + "/" + used_.back()));
  forget(known_.find(used_.back()));
  return before - bytes_;
}

std::uint64_t BlockCache::shrink(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  load();
  std::uint64_t removed = 0;
  while (removed < bytes && !used_.empty()) removed += evict_one();
  return removed;
}

// The rest of the disk is for other programs, for the catalog and for data still to come.
bool BlockCache::make_room(std::uint64_t bytes) {
  const auto has_room = [&] {
    const auto disk = files_.space(folder_);
    return !disk || disk->blocks == 0 ||
           disk->available_bytes() >= store::spare_bytes(*disk) + bytes;
  };
  return has_room() || (shrink(bytes) >= bytes && has_room());
}

void BlockCache::remove(const std::string& object, std::uint64_t block) {
  const auto name = name_of(object, block);
  const std::lock_guard lock(mutex_);
  load();
  static_cast<void>(files_.remove(folder_ + "/" + name));
  if (const auto known = known_.find(name); known != known_.end()) forget(known);
}

void BlockCache::clear() {
  const std::lock_guard lock(mutex_);
  load();
  scan();  // Other processes may have added blocks.
  for (const auto& name : used_) static_cast<void>(files_.remove(folder_ + "/" + name));
  used_.clear();
  known_.clear();
  bytes_ = 0;
}

CellSet BlockCache::read(const std::string& object, std::uint64_t block, CellSet wanted,
                         std::span<std::byte> room) {
  const auto name = name_of(object, block);
  {
    const std::lock_guard lock(mutex_);
    load();
  }
  // Another process may have added the file.
  const auto file = files_.open(folder_ + "/" + name, io::OpenMode::kReadPlanned);
  if (!file) return 0;
  const auto found = read_cells(**file, name, wanted, room);
  const std::lock_guard lock(mutex_);
  use(name, 0);
  return found;
}

CellSet BlockCache::present(const std::string& object, std::uint64_t block, std::size_t bytes) {
  const auto name = name_of(object, block);
  {
    const std::lock_guard lock(mutex_);
    load();
  }
  const auto file = files_.open(folder_ + "/" + name, io::OpenMode::kReadPlanned);
  if (!file) return 0;
  CellTable head;
  return read_head(**file, bytes, head);
}

void BlockCache::add(const std::string& object, std::uint64_t block, CellSet cells,
                     const PartOfBlock& part) {
  const auto name = name_of(object, block);
  const auto path = folder_ + "/" + name;
  std::string temporary;
  {
    const std::lock_guard lock(mutex_);
    load();
    temporary = fmt::format("{}/{}-{}.tmp", folder_, ::getpid(), next_temporary_++);
  }
  if (!make_room(part.block_bytes)) return;
  cells = static_cast<CellSet>(cells & cells_of(part.block_bytes));
  // The new file also contains the cells of the file being replaced.
  std::vector<std::byte> kept;
  const auto missing = static_cast<CellSet>(cells_of(part.block_bytes) & ~cells);
  CellSet earlier = 0;
  if (missing != 0) {
    if (const auto file = files_.open(path, io::OpenMode::kReadPlanned)) {
      kept.resize(part.block_bytes);
      earlier = read_cells(**file, name, missing, kept);
    }
  }
  const auto all = static_cast<CellSet>(cells | earlier);
  CellTable head{};
  base::store_le<std::uint64_t>(head.data(), all);
  std::uint64_t length = kHeadBytes;
  const auto write = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(const auto file, files_.open(temporary, io::OpenMode::kCreateNew));
    for (unsigned cell = 0; cell < kCellsPerBlock; ++cell) {
      if (!has(all, cell)) continue;
      const auto from = has(cells, cell) ? cell_of(part.bytes, cell - part.first_cell)
                                         : cell_of(std::span<const std::byte>(kept), cell);
      base::store_le<std::uint64_t>(head.data() + 8 + 8 * std::size_t{cell},
                                    sum_of(name, cell, from));
      VARVE_TRY(file->write_at(length, from));
      length += from.size();
    }
    VARVE_TRY(file->write_at(0, head));
    // Renaming onto an existing file makes ext4 write the data to the disk first, to protect
    // programs that need the data. A cache does not.
    if (earlier != 0) static_cast<void>(files_.remove(path));
    return files_.rename(temporary, path);
  };
  if (!write()) {
    static_cast<void>(files_.remove(temporary));
    return;
  }
  const std::lock_guard lock(mutex_);
  use(name, length);
  added_ += length;
  if (added_ > bytes_max_ / kScanShare) scan();
  while (bytes_ > bytes_max_ && !used_.empty()) evict_one();
}

}  // namespace varve::remote
