// SPDX-License-Identifier: Apache-2.0
#include "layout/group_packer.h"

#include <algorithm>
#include <latch>
#include <utility>

#include "base/assert.h"

namespace varve::layout {
namespace {

// Most stored bytes of a frame with a prefix, relative to those without.
constexpr double kPrefixShareMax = 0.75;

std::size_t stored_bytes(const format::EncodedFrame& frame, std::size_t raw_bytes) {
  return frame.codec == Codec::kNone ? raw_bytes : frame.stored.size();
}

}  // namespace

GroupPacker::GroupPacker(store::ContainerWriter& writer, const format::FrameCodec& codec,
                         base::ThreadPool& compressors, std::span<const PlannedFrame> frames,
                         const LayoutMetrics* metrics)
    : writer_(writer),
      codec_(codec),
      compressors_(compressors),
      metrics_(metrics),
      frames_(frames) {}

Result<void> GroupPacker::add(ChunkId id, const Fingerprint& fingerprint,
                              std::span<const std::byte> raw) {
  VARVE_ASSERT(!frames_.empty());
  if (chunks_ == 0) begin_frame();
  auto& made = group_.back().made;
  format::ChunkEntry entry;
  entry.id = id;
  entry.fingerprint = fingerprint;
  entry.raw_bytes = static_cast<std::uint32_t>(raw.size());
  made.chunks.push_back(entry);
  made.raw.insert(made.raw.end(), raw.begin(), raw.end());
  return end_chunk();
}

Result<void> GroupPacker::skip() {
  VARVE_ASSERT(!frames_.empty());
  if (chunks_ == 0) begin_frame();
  return end_chunk();
}

void GroupPacker::begin_frame() {
  Frame frame;
  const std::size_t distance = frames_.front().prefix;
  if (distance != 0 && distance <= group_.size()) frame.prefix = group_.size() - distance;
  group_.push_back(std::move(frame));
}

Result<void> GroupPacker::end_chunk() {
  if (++chunks_ < frames_.front().chunks) return {};
  chunks_ = 0;
  const bool ends_group = frames_.front().ends_group;
  frames_ = frames_.subspan(1);
  return ends_group ? write_group() : Result<void>();
}

Result<void> GroupPacker::write_group() {
  restore_order();
  compress_each([](std::size_t) { return true; }, &GroupPacker::compress);
  compress_each([this](std::size_t i) { return is_plain_needed(i); }, &GroupPacker::compress_plain);
  choose_prefixes();
  std::vector<store::GroupFrame> made;
  std::vector<std::size_t> place(group_.size());  // Index of each frame in `made`.
  for (std::size_t i = 0; i < group_.size(); ++i) {
    auto& frame = group_[i];
    if (frame.made.chunks.empty()) continue;
    place[i] = made.size();
    if (frame.prefix)
      frame.made.prefix = static_cast<std::uint8_t>(made.size() - place[*frame.prefix]);
    made.push_back(std::move(frame.made));
  }
  group_.clear();
  if (made.empty()) return {};
  const ChunkId first = made.front().chunks.front().id;
  // No chunk may have a lower birth than the container's first chunk.
  if (last_first_ && first < *last_first_) VARVE_TRY(writer_.flush());
  last_first_ = first;
  return writer_.append_group(std::move(made));
}

// Gives up the prefixes that cost readers too much. A version has about one chunk of each cluster,
// as the first frame of a chain has. So a reader of a version reads at most about twice as many
// bytes as without prefixes.
void GroupPacker::choose_prefixes() {
  std::vector<std::size_t> roots(group_.size());  // First frame of the chain of each frame.
  std::vector<std::size_t> ends(group_.size());
  std::size_t end = 0;
  for (std::size_t i = 0; i < group_.size(); ++i) {
    auto& frame = group_[i];
    const std::size_t raw_bytes = frame.made.raw.size();
    roots[i] = i;
    if (frame.prefix) {
      const std::size_t root = roots[*frame.prefix];
      const std::size_t begin = root == 0 ? 0 : ends[root - 1];
      const std::size_t bytes = stored_bytes(frame.made.encoded, raw_bytes);
      const std::size_t extent = end + bytes - begin;
      const bool is_smaller =
          !frame.has_plain ||
          static_cast<double>(bytes) <=
              kPrefixShareMax * static_cast<double>(stored_bytes(frame.plain, raw_bytes));
      const bool is_near =
          extent <= std::min(format::kFrameExtentBytesMax, 2 * (ends[root] - begin));
      if (is_smaller && is_near) roots[i] = root;
    }
    if (roots[i] != i) {
      count_prefix(i, roots[i]);
    } else {
      if (!frame.has_plain && !frame.made.chunks.empty()) compress_plain(i);
      frame.prefix.reset();
      frame.made.encoded = std::move(frame.plain);
    }
    end += stored_bytes(frame.made.encoded, raw_bytes);
    ends[i] = end;
  }
}

// `root`: the chain's first frame, whose prefix is chosen.
void GroupPacker::count_prefix(std::size_t number, std::size_t root) const {
  if (metrics_ == nullptr) return;
  const auto& frame = group_[number];
  metrics_->delta_bytes.add(frame.made.encoded.stored.size());
  metrics_->delta_plain_bytes.add(
      frame.has_plain ? stored_bytes(frame.plain, frame.made.raw.size())
                      : static_cast<std::uint64_t>(plain_estimate(number, group_[root].made.encoded,
                                                                  group_[root].made.raw.size())));
}

// The group's first chunk has the lowest id by the plan, unless chunks are left out.
void GroupPacker::restore_order() {
  const auto first_with_chunks =
      std::ranges::find_if(group_, [](const Frame& frame) { return !frame.made.chunks.empty(); });
  if (first_with_chunks == group_.end()) return;
  const auto is_first = [&](const Frame& frame) {
    return std::ranges::all_of(frame.made.chunks, [&](const format::ChunkEntry& chunk) {
      return chunk.id >= first_with_chunks->made.chunks.front().id;
    });
  };
  if (std::ranges::all_of(group_, is_first)) return;
  // Rare, so without prefixes: each frame by itself, in the order of the frames' lowest ids.
  for (auto& frame : group_) frame = sorted(std::move(frame));
  std::ranges::sort(group_, {}, [](const Frame& frame) {
    return frame.made.chunks.empty() ? ChunkId{} : frame.made.chunks.front().id;
  });
}

/// Returns the frame without a prefix, with its chunks in the order of their ids.
GroupPacker::Frame GroupPacker::sorted(Frame frame) {
  struct Chunk {
    format::ChunkEntry entry;
    std::size_t offset = 0;
  };
  std::vector<Chunk> chunks;
  std::size_t offset = 0;
  for (const auto& entry : frame.made.chunks) {
    chunks.push_back({entry, offset});
    offset += entry.raw_bytes;
  }
  std::ranges::sort(chunks, {}, [](const Chunk& chunk) { return chunk.entry.id; });
  Frame out;
  for (const auto& chunk : chunks) {
    const auto raw = std::span(frame.made.raw).subspan(chunk.offset, chunk.entry.raw_bytes);
    out.made.chunks.push_back(chunk.entry);
    out.made.raw.insert(out.made.raw.end(), raw.begin(), raw.end());
  }
  return out;
}

void GroupPacker::compress_each(const std::function<bool(std::size_t)>& chosen,
                                void (GroupPacker::*compress_one)(std::size_t)) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < group_.size(); ++i) {
    if (chosen(i)) numbers.push_back(i);
  }
  std::latch done(static_cast<std::ptrdiff_t>(numbers.size()));
  for (const auto i : numbers) {
    compressors_.run([this, &done, compress_one, i] {
      (this->*compress_one)(i);
      done.count_down();
    });
  }
  done.wait();
}

void GroupPacker::compress(std::size_t number) {
  auto& frame = group_[number];
  if (frame.made.chunks.empty()) return;
  if (frame.prefix && group_[*frame.prefix].made.chunks.empty()) frame.prefix.reset();
  if (!frame.prefix) {
    compress_plain(number);
    return;
  }
  frame.made.encoded = codec_.compress(frame.made.raw, group_[*frame.prefix].made.raw);
  if (frame.made.encoded.codec != Codec::kNone) return;
  frame.prefix.reset();
  compress_plain(number);
}

void GroupPacker::compress_plain(std::size_t number) {
  auto& frame = group_[number];
  frame.plain = codec_.compress(frame.made.raw);
  frame.has_plain = true;
}

// Returns whether the frame's stored bytes could be too many for a prefix. The chain's first frame
// has chunks that are alike, so it tells about how many bytes the frame takes without a prefix.
bool GroupPacker::is_plain_needed(std::size_t number) const {
  const auto& frame = group_[number];
  if (frame.has_plain || frame.made.chunks.empty()) return false;
  std::size_t root = number;
  while (group_[root].prefix) root = *group_[root].prefix;
  const double plain = plain_estimate(number, group_[root].plain, group_[root].made.raw.size());
  return static_cast<double>(frame.made.encoded.stored.size()) > kPrefixShareMax * plain;
}

// Returns about how many bytes the frame takes if compressed as well as the chain's first frame.
double GroupPacker::plain_estimate(std::size_t number, const format::EncodedFrame& first,
                                   std::size_t first_raw_bytes) const {
  return static_cast<double>(stored_bytes(first, first_raw_bytes)) /
         static_cast<double>(first_raw_bytes) * static_cast<double>(group_[number].made.raw.size());
}

}  // namespace varve::layout
