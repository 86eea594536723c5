// SPDX-License-Identifier: Apache-2.0
#include "restore/recipe_index.h"

#include <algorithm>

namespace varve::restore {
namespace {
constexpr std::size_t kRunsPerMark = 64;
}  // namespace

void RecipeIndex::build() {
  Mark at;
  for (std::size_t i = 0; i < recipe_->runs.size(); ++i) {
    if (i % kRunsPerMark == 0) marks_.push_back(at);
    const format::RecipeRun& run = recipe_->runs[i];
    at.offset += run.bytes;
    if (!run.is_hole()) at.data_offset += run.bytes;
  }
  file_bytes_ = at.offset;
}

std::uint64_t RecipeIndex::file_bytes() {
  std::call_once(built_, [this] { build(); });
  return file_bytes_;
}

FilePosition RecipeIndex::find(std::uint64_t offset) {
  std::call_once(built_, [this] { build(); });
  const auto& runs = recipe_->runs;
  if (marks_.empty()) return {};
  const auto after =
      std::upper_bound(marks_.begin(), marks_.end(), offset,
                       [](std::uint64_t at, const Mark& mark) { return at < mark.offset; });
  // The first mark is at offset 0, so a mark exists at or before every offset.
  const auto mark = std::prev(after);
  FilePosition position;
  position.run = static_cast<std::size_t>(mark - marks_.begin()) * kRunsPerMark;
  position.data_offset = mark->data_offset;
  const std::size_t first = position.run;
  std::uint64_t left = offset - mark->offset;
  for (; position.run < runs.size() && left >= runs[position.run].bytes; ++position.run) {
    left -= runs[position.run].bytes;
    if (!runs[position.run].is_hole()) position.data_offset += runs[position.run].bytes;
  }
  visited_.fetch_add(position.run - first + 1, std::memory_order_relaxed);
  if (position.run == runs.size()) return position;
  position.run_offset = left;
  if (!runs[position.run].is_hole()) position.data_offset += left;
  return position;
}

std::optional<std::uint64_t> RecipeIndex::seek(std::uint64_t offset, RunKind wanted) {
  const FilePosition from = find(offset);
  const auto& runs = recipe_->runs;
  std::uint64_t begin = offset - from.run_offset;
  std::size_t run = from.run;
  const bool holes = wanted == RunKind::kHole;
  while (run < runs.size() && (runs[run].bytes == 0 || runs[run].is_hole() != holes)) {
    begin += runs[run++].bytes;
  }
  visited_.fetch_add(run - from.run, std::memory_order_relaxed);
  if (run == runs.size()) return std::nullopt;
  return std::max(offset, begin);
}

}  // namespace varve::restore
