// SPDX-License-Identifier: Apache-2.0
#include "layout/delta_plan.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "format/container.h"

namespace varve::layout {
namespace {

// Raw bytes of the chunks in a group's first frame. Similar chunks may be longer, and should still
// fit a frame.
constexpr std::uint64_t kFirstFrameBytes = 96U << 10;
constexpr std::uint32_t kFrameChunksMax = 4096;
constexpr std::uint32_t kFramesMax = 255;  // Of a group: a distance has one byte.

using Cluster = std::vector<std::uint32_t>;  // Indexes of similar chunks, ascending.

// Joins each chunk to the cluster of the last chunk with an equal value in the sketch. A chunk is
// most similar to the chunk's replacement, so the last such chunk is the best.
std::vector<Cluster> clusters_of(std::span<const SketchedChunk> chunks) {
  std::vector<Cluster> clusters;
  std::unordered_map<std::uint64_t, std::uint32_t>
      last;  // Index and value in the sketch -> cluster.
  last.reserve(chunks.size() * std::tuple_size_v<ChunkSketch>);
  for (std::uint32_t i = 0; i < chunks.size(); ++i) {
    const auto key = [&](std::size_t value) {
      return std::uint64_t{value} << 32 | chunks[i].sketch[value];
    };
    auto cluster = static_cast<std::uint32_t>(clusters.size());
    for (std::size_t value = 0; value < chunks[i].sketch.size(); ++value) {
      const auto found = last.find(key(value));
      if (found == last.end()) continue;
      cluster = found->second;
      break;
    }
    if (cluster == clusters.size()) clusters.emplace_back();
    clusters[cluster].push_back(i);
    for (std::size_t value = 0; value < chunks[i].sketch.size(); ++value) {
      last[key(value)] = cluster;
    }
  }
  return clusters;
}

struct Group {
  std::vector<std::uint32_t> chunks;
  std::vector<PlannedFrame> frames;
  std::vector<std::uint32_t> prefixes;  // Number of prefixes in the chain of each frame.
  std::uint64_t raw_bytes = 0;
};

// Divides clusters into groups.
class Planner {
 public:
  explicit Planner(std::span<const SketchedChunk> chunks) : chunks_(chunks) {}

  void add(std::span<const Cluster> clusters) {
    std::size_t longest = 0;
    for (const auto& cluster : clusters) longest = std::max(longest, cluster.size());
    begin_group();
    for (std::size_t rank = 0; rank < longest; ++rank) {
      std::vector<std::uint32_t> row;
      std::uint64_t bytes = 0;
      for (const auto& cluster : clusters) {
        if (rank >= cluster.size()) continue;
        row.push_back(cluster[rank]);
        bytes += chunks_[cluster[rank]].raw_bytes;
      }
      const auto& group = groups_.back();
      if (row_was_divided_ || group.raw_bytes + bytes > kGroupRawBytesMax ||
          group.chunks.size() + row.size() > kGroupChunksMax) {
        begin_group();
      }
      add_row(std::move(row));
    }
  }

  DeltaPlan plan() {
    std::erase_if(groups_, [](const Group& group) { return group.chunks.empty(); });
    std::ranges::sort(groups_, {}, [](const Group& group) { return group.chunks.front(); });
    DeltaPlan plan;
    for (auto& group : groups_) {
      for (const auto index : group.chunks) base::append_run(plan.order, {chunks_[index].id, 1});
      group.frames.back().ends_group = true;
      plan.frames.insert(plan.frames.end(), group.frames.begin(), group.frames.end());
    }
    return plan;
  }

 private:
  void begin_group() {
    if (groups_.empty() || !groups_.back().chunks.empty()) groups_.emplace_back();
  }

  // Adds the chunks of a rank as a frame, or as several frames. A row longer than a group
  // continues in the next group. No further row is added to the next group: a later row may have
  // lower ids than the first chunk of the next group.
  void add_row(std::vector<std::uint32_t> row) {
    row_was_divided_ = false;
    std::ranges::sort(row);
    std::size_t rows_end = groups_.back().frames.size();
    std::uint64_t bytes = 0;
    for (const auto index : row) {
      const auto raw_bytes = chunks_[index].raw_bytes;
      const bool is_full = groups_.back().raw_bytes + raw_bytes > kGroupRawBytesMax ||
                           groups_.back().chunks.size() == kGroupChunksMax ||
                           groups_.back().frames.size() == kFramesMax;
      if (is_full) {
        begin_group();
        rows_end = 0;
        row_was_divided_ = true;
      }
      auto& group = groups_.back();
      const bool begins = group.frames.size() == rows_end ||
                          bytes + raw_bytes > format::kFrameRawBytesMax ||
                          group.frames.back().chunks == kFrameChunksMax;
      if (begins) {
        bytes = 0;
        begin_frame(rows_end);
      }
      ++group.frames.back().chunks;
      group.frames.back().raw_bytes += raw_bytes;
      bytes += raw_bytes;
      group.raw_bytes += raw_bytes;
      group.chunks.push_back(index);
    }
  }

  // `rows_end`: number of frames of the earlier rows.
  void begin_frame(std::size_t rows_end) {
    auto& group = groups_.back();
    PlannedFrame frame;
    std::uint32_t prefixes = 0;
    if (rows_end != 0) {
      const std::size_t before = rows_end - 1;
      const std::size_t prefix = group.prefixes[before] < format::kFramePrefixesMax ? before : 0;
      prefixes = group.prefixes[prefix] + 1;
      frame.prefix = static_cast<std::uint8_t>(group.frames.size() - prefix);
    }
    group.frames.push_back(frame);
    group.prefixes.push_back(prefixes);
  }

  const std::span<const SketchedChunk> chunks_;
  std::vector<Group> groups_;
  bool row_was_divided_ = false;
};

}  // namespace

DeltaPlan plan_delta(std::span<const SketchedChunk> chunks) {
  const auto clusters = clusters_of(chunks);  // Ascending by the first chunk.
  Planner planner(chunks);
  for (std::size_t first = 0; first < clusters.size();) {
    std::size_t end = first;
    std::uint64_t bytes = 0;
    std::uint64_t bytes_max = format::kFrameRawBytesMax;  // Of clusters of one chunk.
    while (end < clusters.size() && end - first < kFrameChunksMax) {
      const auto head = chunks[clusters[end].front()].raw_bytes;
      if (clusters[end].size() > 1) bytes_max = kFirstFrameBytes;
      if (end != first && bytes + head > bytes_max) break;
      bytes += head;
      ++end;
    }
    planner.add(std::span(clusters).subspan(first, end - first));
    first = end;
  }
  return planner.plan();
}

}  // namespace varve::layout
