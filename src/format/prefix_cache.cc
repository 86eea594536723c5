// SPDX-License-Identifier: Apache-2.0
#include "format/prefix_cache.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace varve::format {
namespace {

// Returns whether a later frame of the container has the frame as its prefix.
bool is_prefix(const ContainerHeader& header, std::uint32_t frame) {
  const std::size_t end = std::min<std::size_t>(
      header.frames.size(), std::size_t{frame} + std::numeric_limits<std::uint8_t>::max() + 1);
  for (std::size_t i = std::size_t{frame} + 1; i < end; ++i) {
    if (header.frames[i].prefix == i - frame) return true;
  }
  return false;
}

}  // namespace

PrefixCache::Key PrefixCache::key_of(const ContainerHeader& header, std::uint32_t frame) {
  const auto& entry = header.frames[frame];
  return {header.store, header.number, frame, entry.raw_bytes, entry.checksum, entry.tag_end};
}

PrefixCache::Raw PrefixCache::find(const ContainerHeader& header, std::uint32_t frame) {
  const Key key = key_of(header, frame);
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find(entries_, key, [](const auto& entry) { return entry.first; });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return found->second;
}

void PrefixCache::insert(const ContainerHeader& header, std::uint32_t frame, Raw raw) {
  const Key key = key_of(header, frame);
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find(entries_, key, [](const auto& entry) { return entry.first; });
  if (found != entries_.end()) return;  // Another reader was first.
  entries_.emplace_front(key, std::move(raw));
  if (entries_.size() > frames_max_) entries_.pop_back();
}

Result<std::uint64_t> decode_frame(const FrameCodec& codec, const ContainerHeader& header,
                                   std::uint32_t frame, std::span<const std::byte> stored,
                                   std::span<std::byte> out, PrefixCache& cache) {
  const bool is_kept = is_prefix(header, frame);
  if (is_kept) {
    if (const auto raw = cache.find(header, frame)) {
      std::ranges::copy(*raw, out.begin());
      return std::uint64_t{0};
    }
  }
  const std::uint32_t from = extent_begin(header.frames[frame]);
  std::array<std::uint32_t, kFramePrefixesMax + 1> chain{frame};  // Frames to decode, last first.
  std::size_t count = 1;
  PrefixCache::Raw prefix;
  for (std::uint32_t number = frame; header.frames[number].prefix != 0 && !prefix;) {
    number -= header.frames[number].prefix;
    prefix = cache.find(header, number);
    if (!prefix) chain.at(count++) = number;
  }
  std::uint64_t decoded_bytes = 0;
  while (count != 0) {
    const std::uint32_t number = chain.at(--count);
    const auto& entry = header.frames[number];
    const std::size_t at = entry.offset - from;
    if (at + entry.stored_bytes > stored.size()) {
      return Error(ErrorCode::kCorrupt, "frame: its stored bytes are cut short");
    }
    const auto decode = [&](std::span<std::byte> raw) {
      decoded_bytes += entry.raw_bytes;
      return codec.decode_on(place_of_frame(header, number), entry,
                             prefix ? std::span(*prefix) : std::span<const std::byte>(),
                             stored.subspan(at, entry.stored_bytes), raw);
    };
    if (number != frame) {
      auto raw = std::make_shared<std::vector<std::byte>>(entry.raw_bytes);
      VARVE_TRY(decode(*raw));
      cache.insert(header, number, raw);
      prefix = std::move(raw);
      continue;
    }
    VARVE_TRY(decode(out));
    if (!is_kept) break;
    cache.insert(header, frame,
                 std::make_shared<const std::vector<std::byte>>(out.begin(), out.end()));
  }
  return decoded_bytes;
}

}  // namespace varve::format
