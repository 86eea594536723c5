// SPDX-License-Identifier: Apache-2.0
#include "restore/run_locator.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "restore/chunk_resolver.h"

namespace varve::restore {
namespace {

constexpr unsigned kPartsPerMark = 16;

Error length_mismatch(const format::RecipeRun& run) {
  return Error(ErrorCode::kCorrupt,
               fmt::format("the chunks from {}/{} on do not have the length that the recipe says",
                           static_cast<std::uint32_t>(run.first.birth()), run.first.ordinal()));
}

/// The part of `run` that begins at chunk `chunk`. The caller sets offset and bytes.
struct Located {
  RunPart part;
  bool whole = false;  // True for a whole location run, whose length is known.
  std::uint64_t raw_bytes = 0;
};

Result<Located> locate_part(layout::ChunkSource& source, const format::RecipeRun& run,
                            std::uint32_t chunk) {
  const ChunkId id = run.first.plus(chunk);
  VARVE_TRY_ASSIGN(const auto location, source.locate(id));
  const auto skip = static_cast<std::uint32_t>(id.value - location.first.value);
  if (id < location.first || skip >= location.count) {
    return Error(ErrorCode::kCorrupt,
                 "a container does not hold a chunk that the catalog locates in it");
  }
  Located located;
  located.part.chunk = chunk;
  located.part.count = std::min(location.count - skip, run.count - chunk);
  located.part.container = location.container;
  located.part.index = location.index + skip;
  located.part.stored = location.stored.plus(skip);
  located.whole = located.part.count == location.count && location.raw_bytes != 0;
  located.raw_bytes = location.raw_bytes;
  return located;
}

Result<std::uint64_t> measure(layout::ChunkSource& source, const RunPart& part) {
  auto header = source.header(part.container);
  if (!header) {
    return std::move(header).error().with_context(fmt::format("container {}", part.container));
  }
  const auto& chunks = (*header)->chunks;
  if (part.index + std::size_t{part.count} > chunks.size()) {
    return Error(ErrorCode::kCorrupt,
                 fmt::format("container {} holds fewer chunks than it should", part.container));
  }
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < part.count; ++i) bytes += chunks[part.index + i].raw_bytes;
  return bytes;
}

/// Returns the length of the run's chunks from `chunk` on.
Result<std::uint64_t> measure_rest(layout::ChunkSource& source, const format::RecipeRun& run,
                                   std::uint32_t chunk) {
  std::uint64_t bytes = 0;
  while (chunk < run.count) {
    VARVE_TRY_ASSIGN(const auto located, locate_part(source, run, chunk));
    if (located.whole) {
      bytes += located.raw_bytes;
    } else {
      VARVE_TRY_ASSIGN(const auto part_bytes, measure(source, located.part));
      bytes += part_bytes;
    }
    chunk += located.part.count;
  }
  return bytes;
}

}  // namespace

RunLocator::Mark RunLocator::nearest(std::size_t run_number, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  if (marked_run_ != run_number || marks_.empty()) return {};
  const auto after =
      std::upper_bound(marks_.begin(), marks_.end(), offset,
                       [](std::uint64_t at, const Mark& mark) { return at < mark.offset; });
  return after == marks_.begin() ? Mark{} : *std::prev(after);
}

void RunLocator::keep(std::size_t run_number, Mark mark) {
  const std::lock_guard lock(mutex_);
  if (marked_run_ != run_number) marks_.clear();
  marked_run_ = run_number;
  if (marks_.empty() || marks_.back().offset < mark.offset) marks_.push_back(mark);
}

Result<RunPart> RunLocator::find(layout::ChunkSource& source, const format::RecipeRun& run,
                                 std::size_t run_number, std::uint64_t offset) {
  Mark at = nearest(run_number, offset);
  unsigned parts = 0;
  while (at.chunk < run.count) {
    VARVE_TRY_ASSIGN(auto located, locate_part(source, run, at.chunk));
    RunPart& part = located.part;
    part.offset = at.offset;
    const std::uint64_t left = run.bytes - at.offset;
    if (part.chunk + part.count == run.count) {
      part.bytes = left;  // The rest is the last part: no need to read the container's header.
    } else if (located.whole) {
      part.bytes = located.raw_bytes;
    } else if (auto measured = measure(source, part); measured) {
      part.bytes = *measured;
    } else {
      // Only the first part can begin inside a location run. If the table of the container is
      // damaged, the part's length is the run's length minus the length of the remaining parts.
      const auto rest = measure_rest(source, run, part.chunk + part.count);
      if (!rest || *rest > left) return std::move(measured).error();
      part.bytes = left - *rest;
    }
    if (part.bytes > left) return length_mismatch(run);
    if (offset < at.offset + part.bytes) return part;
    at = {part.chunk + part.count, at.offset + part.bytes};
    if (++parts == kPartsPerMark) {
      parts = 0;
      keep(run_number, at);
    }
  }
  return length_mismatch(run);
}

}  // namespace varve::restore
