// SPDX-License-Identifier: Apache-2.0
#include "index/index_run.h"

#include <fmt/core.h>

#include "base/checksum.h"
#include "base/coding.h"

namespace varve::index {

namespace {

// A larger set of chunk ids is damage: a chunk takes more than one byte of the set.
constexpr std::uint64_t kIdBytesRead = std::uint64_t{1} << 32;

Error damaged(const std::string& path, std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("{}: {}", path, what)};
}

}  // namespace

Result<std::unique_ptr<IndexRun>> IndexRun::open(const RunFolder& folder, const RunRef& expected) {
  std::unique_ptr<IndexRun> run(new IndexRun());
  run->path_ = folder.path_of(expected.number);
  run->ref_ = expected;
  VARVE_TRY_ASSIGN(run->file_, folder.files->open(run->path_, io::OpenMode::kReadPlanned));
  Block block{};
  VARVE_TRY_ASSIGN(const auto got, run->file_->read_at(0, block));
  if (got != block.size()) return damaged(run->path_, "the file is too short");
  auto header = decode_run_header(block);
  if (!header) return std::move(header).error().with_context(run->path_);
  run->header_ = *header;
  const auto checksum = base::load_le<std::uint64_t>(block.data() + kBlockBodyBytes);
  if (header->series != folder.series || header->number != expected.number ||
      header->entries != expected.entries || checksum != expected.header_checksum) {
    return damaged(run->path_, "this is another part of the index than expected");
  }
  VARVE_TRY_ASSIGN(const auto bytes, run->file_->size());
  if (bytes != header->file_bytes() || header->id_bytes > kIdBytesRead) {
    return damaged(run->path_, "the file has a wrong size");
  }
  std::string ids(header->id_bytes, '\0');
  VARVE_TRY_ASSIGN(const auto id_bytes,
                   run->file_->read_at(header->shape.blocks() * kBlockBytes,
                                       std::as_writable_bytes(std::span(ids.data(), ids.size()))));
  if (id_bytes != ids.size() || base::checksum64(base::as_bytes(ids)) != header->id_checksum) {
    return damaged(run->path_, "the set of chunks is damaged");
  }
  VARVE_TRY_ASSIGN(run->covered_, base::IdRuns::decode(ids));
  return run;
}

Result<void> IndexRun::read_block(std::uint64_t number, Block& block) const {
  auto got = file_->read_at(number * kBlockBytes, block);
  if (!got) return std::move(got).error().with_context(path_);
  if (*got != block.size() || !is_sound(block, number)) {
    return damaged(path_, fmt::format("block {} is damaged", number));
  }
  return {};
}

template <typename Get>
Result<std::optional<ChunkId>> IndexRun::search(const Tag& tag, Get&& get) const {
  const RunShape& shape = header_.shape;
  for (std::uint64_t bucket = shape.bucket_of(tag); bucket < shape.entry_blocks(); ++bucket) {
    VARVE_TRY_ASSIGN(const auto block, get(shape.block_of(bucket)));
    // Finds the first entry that is not before the tag. Empty entries are at the end.
    std::size_t low = 0;
    std::size_t high = kBlockEntries;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      const Entry entry = entry_at(block, middle);
      if (!entry.is_empty() && entry.tag < tag) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == kBlockEntries) continue;  // The block is full, with all entries before the tag.
    const Entry entry = entry_at(block, low);
    if (entry.is_empty() || entry.tag != tag) break;
    return std::optional(entry.id());
  }
  return std::optional<ChunkId>();
}

Result<std::optional<ChunkId>> IndexRun::find(const Tag& tag, BlockCache& cache) const {
  const RunShape& shape = header_.shape;
  const auto group = RunShape::group_of(shape.bucket_of(tag));
  VARVE_TRY_ASSIGN(const auto filter, cache.get(*this, shape.filter_of(group)));
  if (!may_contain(filter, tag)) return std::optional<ChunkId>();
  return search(tag, [&](std::uint64_t number) { return cache.get(*this, number); });
}

Result<std::optional<ChunkId>> IndexRun::find_entry(const Tag& tag) const {
  using View = std::span<const std::byte, kBlockBytes>;
  Block block{};
  return search(tag, [&](std::uint64_t number) -> Result<View> {
    VARVE_TRY(read_block(number, block));
    return View(block);
  });
}

Result<void> IndexRun::verify() const {
  Block block{};
  for (std::uint64_t number = 0; number < header_.shape.blocks(); ++number) {
    VARVE_TRY(read_block(number, block));
  }
  return {};
}

Result<std::span<const std::byte, kBlockBytes>> BlockCache::get(const IndexRun& run,
                                                                std::uint64_t number) {
  using View = std::span<const std::byte, kBlockBytes>;
  // Runs have less than 2^40 blocks; numbers of runs with equal low bits are far apart.
  const std::uint64_t key = (std::uint64_t{run.header().number} << 40) | number;
  if (const auto known = place_of_.find(key); known != place_of_.end()) {
    blocks_.splice(blocks_.begin(), blocks_, known->second);
    return View(blocks_.front().block);
  }
  if (blocks_.size() >= blocks_max_) {
    place_of_.erase(blocks_.back().key);
    blocks_.splice(blocks_.begin(), blocks_, std::prev(blocks_.end()));
  } else {
    blocks_.emplace_front();
  }
  Kept& kept = blocks_.front();
  ++blocks_read_;
  if (auto read = run.read_block(number, kept.block); !read) {
    blocks_.pop_front();
    return std::move(read).error();
  }
  kept.key = key;
  place_of_[key] = blocks_.begin();
  return View(kept.block);
}

void BlockCache::clear() {
  place_of_.clear();
  blocks_.clear();
}

Result<Entry> RunScanner::next() {
  const RunShape& shape = run_.header().shape;
  while (true) {
    if (position_ < kBlockEntries) {
      const Entry entry = entry_at(block_, position_++);
      if (!entry.is_empty()) return entry;
      position_ = kBlockEntries;  // Only the end of a block is empty.
    }
    if (bucket_ == shape.entry_blocks()) return Entry();
    VARVE_TRY(run_.read_block(shape.block_of(bucket_++), block_));
    position_ = 0;
  }
}

}  // namespace varve::index
