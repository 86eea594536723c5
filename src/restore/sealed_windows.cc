// SPDX-License-Identifier: Apache-2.0
#include "restore/sealed_windows.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/system_error.h"

namespace varve::restore {

namespace {
// Memory for the cached windows, and for two blocks that are being read or still held by readers.
constexpr std::size_t kBlockRoom =
    layout::room_for(SealedWindows::kTogetherMax * SealedWindows::kWindowBytes);
constexpr std::size_t kMemoryBytes =
    (SealedWindows::kWindows / SealedWindows::kTogetherMax + 2) * kBlockRoom;

// Whether to read around unreadable bytes, in smaller requests, or to fail.
enum class Around : bool { kNo, kYes };
}  // namespace

/// Memory of the blocks, in one piece large enough for huge pages. Fresh memory in small pages
/// costs a page fault for every 4 KiB, as much as the read into the memory. A block takes the
/// lowest free place, so a reader of few windows touches little of the piece.
struct SealedWindows::Memory {
  /// Returns `bytes` of memory for give_back(), or an empty span if no place is large enough.
  std::span<std::byte> take(std::size_t bytes) {
    const std::lock_guard lock(mutex);
    if (!all) all.emplace(kMemoryBytes);
    auto free = all->span();
    auto next = used.begin();
    for (; next != used.end(); ++next) {
      const auto gap = static_cast<std::size_t>(next->data() - free.data());
      if (gap >= bytes) break;
      free = free.subspan(gap + next->size());
    }
    if (free.size() < bytes) return {};
    return *used.insert(next, free.first(bytes));
  }
  void give_back(std::span<std::byte> bytes) {
    const std::lock_guard lock(mutex);
    const auto place = std::ranges::find(used, bytes.data(), &std::span<std::byte>::data);
    VARVE_ASSERT(place != used.end());
    used.erase(place);
  }

  std::mutex mutex;  // Innermost.
  std::optional<base::AlignedBuffer> all;
  std::vector<std::span<std::byte>> used;  // Ascending.
};

/// The bytes of an entry. The first reader loads the bytes, and later readers wait. The memory is
/// free again when the cache has dropped the entry and the last reader has finished.
struct SealedWindows::Block {
  explicit Block(std::shared_ptr<Memory> of) : source(std::move(of)) {}
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { leave_room(); }

  /// Takes memory for `count` bytes. Allocates separate memory while readers hold many blocks.
  std::span<std::byte> take_room(std::size_t count) {
    leave_room();
    room = source->take(count);
    if (!room.empty()) return room;
    return own.emplace(count).span();
  }
  void leave_room() {
    own.reset();
    if (!room.empty()) source->give_back(std::exchange(room, {}));
  }

  const std::shared_ptr<Memory> source;
  std::mutex mutex;
  std::span<std::byte> room;               // Memory of `source`.
  std::optional<base::AlignedBuffer> own;  // Used if `source` has no room.
  std::span<const std::byte> bytes;        // Empty until loaded.
  store::UnreadParts unread;               // Parts of `bytes`.
};

SealedWindows::SealedWindows() : memory_(std::make_shared<Memory>()) {}

void SealedWindows::add_windows(const format::ContainerHeader& header, Slice slice, Set& set) {
  const std::size_t begin = slice_begin(header, slice);
  const std::size_t end = begin + slice_bytes(header, slice);
  for (std::size_t at = begin / kWindowBytes; at * kWindowBytes < end && at < set.size(); ++at) {
    set.set(at);
  }
}

/// Returns the request for the first wanted window, which is not cached. The caller holds the
/// mutex.
SealedWindows::Entry SealedWindows::request_for(const Wanted& wanted, const Plan& plan) const {
  Set kept;
  for (const Entry& one : entries_) {
    if (one.salt != wanted.salt) continue;
    for (std::uint32_t i = 0; i < one.count; ++i) kept.set(one.first + i);
  }
  const auto run_before = [&](std::uint32_t window) {
    const auto before = std::ranges::find_if(entries_, [&](const Entry& one) {
      return one.salt == wanted.salt && one.first + one.count == window;
    });
    return before == entries_.end() ? 0 : before->run;
  };
  const std::uint32_t block = wanted.first / kTogetherMax * kTogetherMax;
  const std::uint32_t block_end = std::min(block + kTogetherMax, wanted.windows);
  std::uint32_t planned = 0;
  for (std::uint32_t i = block; i < block_end; ++i) planned += plan.wanted.test(i) ? 1 : 0;
  std::uint32_t first = wanted.first;
  std::uint32_t end = block_end;
  if (4 * planned >= 3 * (block_end - block)) {
    while (first > block && !kept.test(first - 1)) --first;
  } else {
    std::uint32_t count = run_before(first) / 2;
    if (plan.is_random) count = std::max(count, wanted.last - first + 1);
    end = std::min(first + std::clamp(count, 1U, kTogetherMax), wanted.windows);
  }
  std::uint32_t count = 1;
  while (first + count < end && !kept.test(first + count)) ++count;
  return {wanted.salt, first, count, run_before(first) + count, std::make_shared<Block>(memory_)};
}

/// Returns the entry of the first wanted window. Adds an entry if the window is not cached.
SealedWindows::Entry SealedWindows::find(const Wanted& wanted, const Plan& plan) {
  std::vector<std::shared_ptr<Block>> dropped;  // Destroyed after the unlock.
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    const auto has_window = [&](const Entry& one) {
      return one.salt == wanted.salt && one.first <= wanted.first &&
             wanted.first - one.first < one.count;
    };
    const auto known = std::ranges::find_if(entries_, has_window);
    if (known != entries_.end()) {
      std::rotate(known, known + 1, entries_.end());
      return entries_.back();
    }
    entry = request_for(wanted, plan);
    add(entry, dropped);
  }
  return entry;
}

/// Returns an entry of a single window, replacing the entry with the window.
SealedWindows::Entry SealedWindows::alone(const Salt& salt, std::uint32_t index) {
  std::vector<std::shared_ptr<Block>> dropped;
  Entry entry{salt, index, 1, 1, std::make_shared<Block>(memory_)};
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const Entry& one) {
      return one.salt == salt && one.first <= index && index - one.first < one.count;
    });
    add(entry, dropped);
  }
  return entry;
}

/// Adds an entry, and drops the least recently used entries. The caller holds the mutex.
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

Result<SliceBytes> SealedWindows::read(layout::ChunkSource& source,
                                       const format::ContainerHeader& header, Slice slice,
                                       std::span<std::byte> room, bool once, const Plan& plan,
                                       Cost& cost) {
  VARVE_ASSERT(header.seal.has_value());
  const std::uint32_t data = data_end(header);
  // Loads the bytes of an entry. The caller holds the mutex of the entry's block.
  const auto load = [&](const Entry& entry, Around around) -> Result<void> {
    const auto begin = static_cast<std::uint32_t>(entry.first * kWindowBytes);
    const std::size_t bytes = std::min<std::size_t>(entry.count * kWindowBytes, data - begin);
    Block& block = *entry.block;
    const auto room_of = block.take_room(layout::room_for(bytes));
    std::span<const std::byte> loaded = room_of.first(bytes);
    ++cost.requests;
    const auto read = [&]() -> Result<void> {
      if (around == Around::kYes) {
        VARVE_TRY_ASSIGN(block.unread,
                         source.read_around(header.number, begin, room_of.first(bytes)));
        return {};
      }
      if (!once) return source.read_data(header.number, begin, room_of.first(bytes));
      VARVE_TRY_ASSIGN(loaded, source.read_once(header.number, begin, bytes, room_of));
      return {};
    }();
    if (!read) {
      block.leave_room();
      return read.error();
    }
    block.bytes = loaded;
    cost.bytes += bytes;
    return {};
  };
  const std::size_t bytes = slice_bytes(header, slice);
  const std::size_t begin = slice_begin(header, slice);
  Wanted wanted;
  wanted.salt = header.seal->salt;
  wanted.windows = static_cast<std::uint32_t>((data + kWindowBytes - 1) / kWindowBytes);
  wanted.last = static_cast<std::uint32_t>((begin + bytes - 1) / kWindowBytes);
  store::UnreadParts unread;
  for (std::size_t done = 0; done < bytes;) {
    wanted.first = static_cast<std::uint32_t>((begin + done) / kWindowBytes);
    Entry entry = find(wanted, plan);
    std::unique_lock lock(entry.block->mutex);
    if (entry.block->bytes.empty()) {
      auto loaded = load(entry, Around::kNo);
      // The unreadable windows may not be wanted at all, so the wanted window is read alone.
      if (!loaded && entry.count > 1) {
        lock.unlock();
        entry = alone(wanted.salt, wanted.first);
        lock = std::unique_lock(entry.block->mutex);
        loaded = entry.block->bytes.empty() ? load(entry, Around::kNo) : Result<void>();
      }
      if (!loaded && base::is_damage(loaded.error())) loaded = load(entry, Around::kYes);
      VARVE_TRY(std::move(loaded));
    }
    const auto present = entry.block->bytes;
    lock.unlock();  // Loaded bytes do not change while the entry has the block.
    const std::size_t at = begin + done - entry.first * kWindowBytes;
    VARVE_ASSERT(at < present.size());
    const std::size_t n = std::min(bytes - done, present.size() - at);
    unread.add(done, entry.block->unread.within(at, at + n));
    if (n == bytes) return SliceBytes{present.subspan(at, n), entry.block, std::move(unread)};
    std::memcpy(room.data() + done, present.data() + at, n);
    done += n;
  }
  return SliceBytes{room.first(bytes), nullptr, std::move(unread)};
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
