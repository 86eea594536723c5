// SPDX-License-Identifier: Apache-2.0
#include "restore/read_costs.h"

#include <algorithm>

namespace varve::restore {
namespace {

constexpr double kGapBytesMin = 16U << 10;
constexpr double kGapBytesMax = 1U << 20;
constexpr std::uint32_t kRequestBytesMax = 2U << 20;

}  // namespace

ReadCosts costs_of_disk(double request_seconds, double bytes_per_second) {
  const double gap = std::clamp(request_seconds * bytes_per_second, kGapBytesMin, kGapBytesMax);
  ReadCosts costs;
  costs.gap_bytes_max = static_cast<std::uint32_t>(gap);
  // Makes requests so long that the start takes at most a fifth of the request's time.
  costs.request_bytes_max = std::clamp<std::uint32_t>(
      4 * costs.gap_bytes_max, static_cast<std::uint32_t>(kSliceBytesMax), kRequestBytesMax);
  return costs;
}

std::uint32_t slice_begin(const format::ContainerHeader& header, Slice slice) {
  std::uint32_t begin = header.frames[slice.first].offset;
  for (std::uint32_t frame = slice.first; frame <= slice.last; ++frame) {
    begin = std::min(begin, format::extent_begin(header.frames[frame]));
  }
  return begin;
}

std::vector<Slice> plan_slices(const format::ContainerHeader& header,
                               std::span<const FrameNeed> needs, const ReadCosts& costs) {
  std::vector<Slice> slices;
  Slice slice;
  bool is_open = false;
  bool has_now = false;
  const auto close = [&] {
    if (has_now) slices.push_back(slice);
    is_open = false;
    has_now = false;
  };
  for (std::uint32_t frame = 0; frame < needs.size(); ++frame) {
    if (needs[frame] == FrameNeed::kNone) continue;
    if (is_open) {
      const std::size_t gap = header.frames[frame].offset - frame_end(header.frames[slice.last]);
      const std::size_t bytes = slice_bytes(header, {slice.first, frame});
      if (gap > costs.gap_bytes_max || bytes > costs.request_bytes_max) close();
    }
    if (!is_open) slice.first = frame;
    is_open = true;
    slice.last = frame;
    has_now = has_now || needs[frame] == FrameNeed::kNow;
  }
  close();
  return slices;
}

std::vector<Slice> split_slices(const format::ContainerHeader& header,
                                std::span<const FrameNeed> needs, std::span<const Slice> slices,
                                std::size_t bytes_max) {
  std::vector<Slice> parts;
  for (const Slice& slice : slices) {
    bool is_open = false;
    for (std::uint32_t frame = slice.first; frame <= slice.last; ++frame) {
      if (needs[frame] == FrameNeed::kNone) continue;
      if (is_open && slice_bytes(header, {parts.back().first, frame}) <= bytes_max) {
        parts.back().last = frame;
        continue;
      }
      parts.push_back({frame, frame});
      is_open = true;
    }
  }
  return parts;
}

}  // namespace varve::restore
