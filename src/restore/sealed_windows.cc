// SPDX-License-Identifier: Apache-2.0
#include "restore/sealed_windows.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "restore/read_costs.h"

namespace varve::restore {

namespace {
constexpr std::size_t kSparesMax = 2;
}  // namespace

/// The bytes of an entry. The first reader loads them, and others wait for it.
struct SealedWindows::Block {
  std::mutex mutex;
  std::optional<base::AlignedBuffer> memory{};
  std::span<const std::byte> bytes{};  // Empty until they are loaded.
};

/// Returns the entry of a window. Adds one if none is kept. `windows`: those of the container.
SealedWindows::Entry SealedWindows::find(const Salt& salt, std::uint32_t index,
                                         std::uint32_t windows) {
  std::vector<std::shared_ptr<Block>> dropped;
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    std::uint32_t run = 0;
    std::uint32_t end = windows;
    for (auto one = entries_.begin(); one != entries_.end(); ++one) {
      if (one->salt != salt) continue;
      if (one->first <= index && index - one->first < one->count) {
        std::rotate(one, one + 1, entries_.end());
        return entries_.back();
      }
      if (one->first + one->count == index) run = one->run;
      if (one->first > index) end = std::min(end, one->first);
    }
    const std::uint32_t count = std::min(std::clamp(run / 2, 1U, kTogetherMax), end - index);
    entry = {salt, index, count, run + count, std::make_shared<Block>()};
    add(entry, dropped);
  }
  keep_memory(std::move(dropped));
  return entry;
}

/// Returns an entry of one window, in place of the one that has it.
SealedWindows::Entry SealedWindows::alone(const Salt& salt, std::uint32_t index) {
  std::vector<std::shared_ptr<Block>> dropped;
  Entry entry{salt, index, 1, 1, std::make_shared<Block>()};
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& one) {
      return one.salt == salt && one.first <= index && index - one.first < one.count;
    });
    add(entry, dropped);
  }
  keep_memory(std::move(dropped));
  return entry;
}

/// Adds an entry, and drops the ones that were not used for longest. The caller holds the mutex.
void SealedWindows::add(Entry entry, std::vector<std::shared_ptr<Block>>& dropped) {
  std::size_t windows = entry.count;
  for (const Entry& one : entries_) windows += one.count;
  auto first = entries_.begin();
  while (windows > kWindows) {
    windows -= first->count;
    dropped.push_back(std::move(first->block));
    ++first;
  }
  entries_.erase(entries_.begin(), first);
  entries_.push_back(std::move(entry));
}

/// Keeps the memory of dropped blocks that no reader uses.
void SealedWindows::keep_memory(std::vector<std::shared_ptr<Block>> dropped) {
  for (const auto& block : dropped) {
    if (block.use_count() > 1) continue;
    std::optional<base::AlignedBuffer> memory;
    {
      const std::lock_guard lock(block->mutex);  // Its last reader has finished.
      memory = std::exchange(block->memory, std::nullopt);
    }
    if (!memory) continue;
    const std::lock_guard lock(mutex_);
    if (spares_.size() == kSparesMax) spares_.erase(spares_.begin());
    spares_.push_back(std::move(*memory));
  }
}

base::AlignedBuffer SealedWindows::memory_for(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto fits = [bytes](const base::AlignedBuffer& one) {
      return one.size() >= bytes && one.size() <= 2 * bytes;
    };
    const auto spare = std::ranges::find_if(spares_, fits);
    if (spare != spares_.end()) {
      auto memory = std::move(*spare);
      spares_.erase(spare);
      return memory;
    }
  }
  return base::AlignedBuffer(bytes);
}

Result<SealedWindows::Cost> SealedWindows::read(layout::ChunkSource& source,
                                                const format::ContainerHeader& header,
                                                std::uint32_t offset, std::span<std::byte> out,
                                                bool once) {
  VARVE_ASSERT(header.seal.has_value());
  const std::uint32_t end = data_end(header);
  const auto windows = static_cast<std::uint32_t>((end + kWindowBytes - 1) / kWindowBytes);
  Cost cost;
  // Loads the bytes of an entry, whose block is locked.
  const auto load = [&](const Entry& entry) -> Result<void> {
    const auto begin = static_cast<std::uint32_t>(entry.first * kWindowBytes);
    const std::size_t bytes = std::min<std::size_t>(entry.count * kWindowBytes, end - begin);
    auto memory = memory_for(layout::room_for(bytes));
    std::span<const std::byte> loaded = memory.span().first(bytes);
    ++cost.requests;
    if (once) {
      VARVE_TRY_ASSIGN(loaded, source.read_once(header.number, begin, bytes, memory.span()));
    } else {
      VARVE_TRY(source.read_data(header.number, begin, memory.span().first(bytes)));
    }
    entry.block->memory.emplace(std::move(memory));
    entry.block->bytes = loaded;
    cost.bytes += bytes;
    return {};
  };
  while (!out.empty()) {
    const auto index = static_cast<std::uint32_t>(offset / kWindowBytes);
    Entry entry = find(header.seal->salt, index, windows);
    std::unique_lock lock(entry.block->mutex);
    if (entry.block->bytes.empty()) {
      auto loaded = load(entry);
      // Perhaps only windows that nobody wants are unreadable, so this reads the wanted one.
      if (!loaded && entry.count > 1) {
        lock.unlock();
        entry = alone(header.seal->salt, index);
        lock = std::unique_lock(entry.block->mutex);
        loaded = entry.block->bytes.empty() ? load(entry) : Result<void>();
      }
      VARVE_TRY(std::move(loaded));
    }
    const std::size_t at = offset - entry.first * kWindowBytes;
    VARVE_ASSERT(at < entry.block->bytes.size());
    const std::size_t n = std::min(out.size(), entry.block->bytes.size() - at);
    std::copy_n(entry.block->bytes.begin() + static_cast<std::ptrdiff_t>(at), n, out.begin());
    offset += static_cast<std::uint32_t>(n);
    out = out.subspan(n);
  }
  return cost;
}

bool SealedWindows::has_part_of(const format::ContainerHeader& header) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(entries_,
                             [&](const Entry& one) { return one.salt == header.seal->salt; });
}

void SealedWindows::forget(const format::ContainerHeader& header) {
  if (!header.seal) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& one) { return one.salt == header.seal->salt; });
}

}  // namespace varve::restore
