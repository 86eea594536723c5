// SPDX-License-Identifier: Apache-2.0
#include "store/unwritten_frames.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "store/container_builder.h"

namespace varve::store {

namespace {
// Leaves room in a container for the header of a frame of tiny chunks: 144 KiB.
constexpr std::size_t kFrameChunksMax = 4096;
constexpr std::size_t kSpareBytes = 8U << 20;  // Limit of frame buffers kept for reuse.
}  // namespace

bool UnwrittenFrames::is_open_too_full(std::size_t chunk_bytes) const {
  return open_ && (open_->raw.size() + chunk_bytes > frame_bytes_ ||
                   open_->chunks.size() == kFrameChunksMax);
}

void UnwrittenFrames::append(const format::ChunkEntry& chunk, std::span<const std::byte> raw) {
  if (!open_) {
    open_ = std::make_shared<UnwrittenFrame>();
    if (!spare_.empty()) {
      open_->raw = std::move(spare_.back());
      spare_.pop_back();
      open_->raw.clear();
    }
    open_->raw.reserve(std::max(frame_bytes_, raw.size()));
  }
  open_->chunks.push_back(chunk);
  open_->offsets.push_back(static_cast<std::uint32_t>(open_->raw.size()));
  open_->raw.insert(open_->raw.end(), raw.begin(), raw.end());
}

UnwrittenFramePtr UnwrittenFrames::close() {
  VARVE_ASSERT(open_ != nullptr);
  waiting_bytes_ += open_->raw.size();
  frames_.push_back(std::move(open_));
  return frames_.back();
}

void UnwrittenFrames::append_group(std::vector<GroupFrame> group) {
  VARVE_ASSERT(open_ == nullptr);
  std::size_t frames = group.size();
  for (auto& one : group) {
    auto frame = std::make_shared<UnwrittenFrame>();
    frame->chunks = std::move(one.chunks);
    frame->raw = std::move(one.raw);
    frame->encoded = std::move(one.encoded);
    frame->prefix = one.prefix;
    frame->group = std::exchange(frames, 0);
    frame->in_group = true;
    frame->encoded_done = true;
    waiting_bytes_ += frame->raw.size();
    frames_.push_back(std::move(frame));
  }
}

std::optional<std::vector<std::byte>> UnwrittenFrames::find(ChunkId id) const {
  const auto copy_from = [&](const UnwrittenFrame& frame) -> std::optional<std::vector<std::byte>> {
    const auto& chunks = frame.chunks;
    const auto it = std::lower_bound(
        chunks.begin(), chunks.end(), id,
        [](const format::ChunkEntry& entry, ChunkId wanted) { return entry.id < wanted; });
    if (it == chunks.end() || it->id != id) return std::nullopt;
    const auto from =
        frame.raw.begin() + frame.offsets[static_cast<std::size_t>(it - chunks.begin())];
    return std::vector<std::byte>(from, from + it->raw_bytes);
  };
  if (open_ && open_->chunks.front().id <= id) return copy_from(*open_);
  const auto after = std::upper_bound(frames_.begin(), frames_.end(), id,
                                      [](ChunkId wanted, const UnwrittenFramePtr& frame) {
                                        return wanted < frame->chunks.front().id;
                                      });
  if (after == frames_.begin()) return std::nullopt;
  return copy_from(**std::prev(after));
}

UnwrittenFramePtr UnwrittenFrames::to_pack() const {
  return packed_ < frames_.size() ? frames_[packed_] : nullptr;
}

bool UnwrittenFrames::is_ready() const {
  return packed_ < frames_.size() && frames_[packed_]->encoded_done;
}

std::vector<PackedFrame> UnwrittenFrames::group_to_pack() const {
  std::vector<PackedFrame> group;
  const std::size_t count = std::max<std::size_t>(frames_[packed_]->group, 1);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& frame = *frames_[packed_ + i];
    group.push_back({frame.chunks, frame.raw, &frame.encoded, frame.prefix, frame.in_group});
  }
  return group;
}

void UnwrittenFrames::release_raw(UnwrittenFrame& frame) {
  if (frame.raw.empty()) return;
  waiting_bytes_ -= frame.raw.size();
  if (spare_.size() < kSpareBytes / frame_bytes_) spare_.push_back(std::move(frame.raw));
  frame.raw = {};
}

void UnwrittenFrames::drop_packed() {
  for (; packed_ != 0; --packed_) {
    release_raw(*frames_.front());
    frames_.pop_front();
    ++written_;
  }
}

bool UnwrittenFrames::are_all_encoded() const {
  return std::ranges::all_of(frames_,
                             [](const UnwrittenFramePtr& frame) { return frame->encoded_done; });
}

}  // namespace varve::store
