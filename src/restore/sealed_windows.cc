// SPDX-License-Identifier: Apache-2.0
#include "restore/sealed_windows.h"

#include <algorithm>
#include <optional>

#include "base/aligned_buffer.h"
#include "base/assert.h"
#include "restore/read_costs.h"

namespace varve::restore {

/// The bytes of a window. The first reader loads them, and others wait for it.
struct SealedWindows::Window {
  std::mutex mutex;
  std::optional<base::AlignedBuffer> memory{};
  std::span<const std::byte> bytes{};  // Empty until they are loaded.
};

std::shared_ptr<SealedWindows::Window> SealedWindows::find(const Salt& salt, std::uint32_t index) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& one) { return one.index == index && one.salt == salt; });
  if (found != entries_.end()) {
    std::rotate(found, found + 1, entries_.end());
  } else {
    if (entries_.size() == kWindows) entries_.erase(entries_.begin());
    entries_.push_back({salt, index, std::make_shared<Window>()});
  }
  return entries_.back().window;
}

Result<SealedWindows::Cost> SealedWindows::read(layout::ChunkSource& source,
                                                const format::ContainerHeader& header,
                                                std::uint32_t offset, std::span<std::byte> out,
                                                bool once) {
  VARVE_ASSERT(header.seal.has_value());
  const std::uint32_t end = data_end(header);
  Cost cost;
  while (!out.empty()) {
    const std::uint32_t index = offset / kWindowBytes;
    const auto begin = static_cast<std::uint32_t>(index * kWindowBytes);
    const auto window = find(header.seal->salt, index);
    const std::lock_guard lock(window->mutex);
    if (window->bytes.empty()) {
      const std::size_t bytes = std::min<std::size_t>(kWindowBytes, end - begin);
      auto memory = base::AlignedBuffer(layout::room_for(bytes));
      std::span<const std::byte> loaded = memory.span().first(bytes);
      if (once) {
        VARVE_TRY_ASSIGN(loaded, source.read_once(header.number, begin, bytes, memory.span()));
      } else {
        VARVE_TRY(source.read_data(header.number, begin, memory.span().first(bytes)));
      }
      window->memory.emplace(std::move(memory));
      window->bytes = loaded;
      ++cost.requests;
      cost.bytes += bytes;
    }
    const std::size_t at = offset - begin;
    VARVE_ASSERT(at < window->bytes.size());
    const std::size_t n = std::min(out.size(), window->bytes.size() - at);
    std::copy_n(window->bytes.begin() + static_cast<std::ptrdiff_t>(at), n, out.begin());
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
