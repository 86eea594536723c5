// SPDX-License-Identifier: Apache-2.0
#include "replica/block_cache.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>

#include "base/coding.h"

namespace varve::replica {

namespace {

constexpr std::size_t kSumBytes = 8;
constexpr std::string_view kEnding = ".block";

std::string name_of(const std::string& object, std::uint64_t block) {
  const auto hash = XXH3_128bits(object.data(), object.size());
  return fmt::format("{:016x}{:016x}-{:08x}{}", hash.high64, hash.low64, block, kEnding);
}

std::uint64_t sum_of(const std::string& name, std::span<const std::byte> bytes) {
  const auto seed = XXH3_64bits(name.data(), name.size());
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace

// Blocks that an earlier process left are the first to be evicted.
void BlockCache::load() {
  if (loaded_) return;
  loaded_ = true;
  static_cast<void>(files_.make_directory(folder_));
  const auto names = files_.list(folder_);
  if (!names) return;
  for (const auto& name : *names) {
    if (!name.ends_with(kEnding)) {
      static_cast<void>(files_.remove(folder_ + "/" + name));
      continue;
    }
    const auto bytes = files_.tree_bytes(folder_ + "/" + name);
    if (bytes) use(name, *bytes);
  }
}

void BlockCache::use(const std::string& name, std::uint64_t bytes) {
  const auto known = known_.find(name);
  if (known != known_.end()) {
    used_.splice(used_.begin(), used_, known->second.at);
    return;
  }
  used_.push_front(name);
  known_[name] = {bytes, used_.begin()};
  bytes_ += bytes;
}

void BlockCache::evict() {
  while (bytes_ > bytes_max_ && !used_.empty()) {
    const auto known = known_.find(used_.back());
    static_cast<void>(files_.remove(folder_ + "/" + used_.back()));
    bytes_ -= known->second.bytes;
    known_.erase(known);
    used_.pop_back();
  }
}

std::optional<std::string> BlockCache::find(const std::string& object, std::uint64_t block,
                                            std::size_t bytes) {
  const auto name = name_of(object, block);
  {
    const std::lock_guard lock(mutex_);
    load();
    if (!known_.contains(name)) return std::nullopt;
  }
  const auto file = files_.open(folder_ + "/" + name, io::OpenMode::kRead);
  if (!file) return std::nullopt;
  std::string text(bytes + kSumBytes, '\0');
  const auto got = (*file)->read_at(0, std::as_writable_bytes(std::span(text)));
  if (!got || *got != text.size()) return std::nullopt;
  const auto stored = base::load_le<std::uint64_t>(base::as_bytes(text).data() + bytes);
  text.resize(bytes);
  if (sum_of(name, base::as_bytes(text)) != stored) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (known_.contains(name)) use(name, 0);
  return text;
}

void BlockCache::add(const std::string& object, std::uint64_t block,
                     std::span<const std::byte> bytes) {
  const auto name = name_of(object, block);
  std::string temporary;
  {
    const std::lock_guard lock(mutex_);
    load();
    temporary = fmt::format("{}/{}-{}.tmp", folder_, ::getpid(), next_temporary_++);
  }
  std::string sum;
  base::ByteWriter(sum).u64(sum_of(name, bytes));
  const auto write = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(const auto file, files_.open(temporary, io::OpenMode::kCreateNew));
    VARVE_TRY(file->write_at(0, bytes));
    VARVE_TRY(file->write_at(bytes.size(), base::as_bytes(sum)));
    return files_.rename(temporary, folder_ + "/" + name);
  };
  if (!write()) {
    static_cast<void>(files_.remove(temporary));
    return;
  }
  const std::lock_guard lock(mutex_);
  use(name, bytes.size() + kSumBytes);
  evict();
}

}  // namespace varve::replica
