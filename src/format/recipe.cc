// SPDX-License-Identifier: Apache-2.0
#include "format/recipe.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/id_runs.h"
#include "base/ids.h"
#include "format/container.h"
#include "format/recipe_decoder.h"

namespace varve::format {

namespace {

// The maximum of off_t: no file is longer.
constexpr std::uint64_t kFileBytesMax = kAnyFileBytes;

// Maximum encoded size of a run: two varints of 10 bytes, and a count of 5.
constexpr std::size_t kRunBytesMax = 25;
// Number of runs for which the decoder reserves memory at once. For longer recipes, memory grows
// with the decoded runs.
constexpr std::uint64_t kRunsReserved = std::uint64_t{8} << 20;

// A hole has a length; a chunk has at least one byte and fits a frame; the run's chunks stay inside
// one birth.
bool is_possible_run(const RecipeRun& run) {
  if (run.bytes == 0 || run.bytes > kFileBytesMax) return false;
  if (run.is_hole()) return true;
  return run.bytes >= run.count && run.bytes <= std::uint64_t{run.count} * kFrameRawBytesMax &&
         are_chunk_ids(run.first, run.count);
}

// Returns whether a writer would have joined the two runs.
bool joins(const RecipeRun& last, const RecipeRun& next) {
  if (last.is_hole() || next.is_hole()) return last.is_hole() && next.is_hole();
  return base::continues({last.first, last.count}, {next.first, next.count});
}

// Reads the run after `last`, and adds the run's bytes to `sum`, which stays within `bytes_max`.
std::optional<RecipeRun> get_run(base::ByteReader& reader, const RecipeRun* last, ChunkId& base,
                                 std::uint64_t& sum, std::uint64_t bytes_max) {
  RecipeRun run;
  const std::uint64_t count = reader.varint();
  run.count = static_cast<std::uint32_t>(count);
  if (count != 0) run.first = base.plus(static_cast<std::uint64_t>(reader.svarint()));
  run.bytes = reader.varint();
  if (!reader.ok() || count > std::numeric_limits<std::uint32_t>::max() || !is_possible_run(run) ||
      run.bytes > bytes_max - sum || (last != nullptr && joins(*last, run))) {
    return std::nullopt;
  }
  if (!run.is_hole()) base = run.first.plus(run.count);
  sum += run.bytes;
  return run;
}

}  // namespace

std::uint64_t Recipe::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& run : runs) sum += run.bytes;
  return sum;
}

std::uint64_t Recipe::data_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& run : runs) sum += run.is_hole() ? 0 : run.bytes;
  return sum;
}

void Recipe::append_chunk(ChunkId id, std::uint32_t bytes) { append_run({id, 1, bytes}); }

void Recipe::append_run(const RecipeRun& run) {
  if (run.is_hole()) {
    append_hole(run.bytes);
    return;
  }
  if (!runs.empty() && joins(runs.back(), run)) {
    runs.back().count += run.count;
    runs.back().bytes += run.bytes;
    return;
  }
  runs.push_back(run);
}

void Recipe::append_hole(std::uint64_t bytes) {
  if (bytes == 0) return;
  if (!runs.empty() && runs.back().is_hole()) {
    runs.back().bytes += bytes;
    return;
  }
  runs.push_back({ChunkId{}, 0, bytes});
}

void encode_recipe(const Recipe& recipe, ChunkId& base, std::string& out) {
  base::ByteWriter w(out);
  w.varint(recipe.runs.size());
  for (const auto& run : recipe.runs) {
    VARVE_ASSERT(is_possible_run(run));
    w.varint(run.count);
    if (!run.is_hole()) {
      // The difference wraps around, so any two ids have a difference.
      w.svarint(static_cast<std::int64_t>(run.first.value - base.value));
      base = run.first.plus(run.count);
    }
    w.varint(run.bytes);
  }
}

Recipe decode_recipe(base::ByteReader& reader, ChunkId& base) {
  Recipe recipe;
  const std::uint64_t n = reader.varint();
  if (n > reader.left() / 2) {  // A run takes two bytes at least.
    reader.fail();
    return {};
  }
  recipe.runs.reserve(n);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto* last = recipe.runs.empty() ? nullptr : &recipe.runs.back();
    const auto run = get_run(reader, last, base, sum, kFileBytesMax);
    if (!run) {
      reader.fail();
      return {};
    }
    recipe.runs.push_back(*run);
  }
  return recipe;
}

RecipeDecoder::RecipeDecoder(std::uint64_t file_bytes) : RecipeDecoder(file_bytes, nullptr) {}

RecipeDecoder::RecipeDecoder(std::uint64_t file_bytes, Visitor visit)
    : file_bytes_(std::min(file_bytes, kFileBytesMax)), visit_(std::move(visit)) {}

std::optional<std::size_t> RecipeDecoder::take(std::span<const std::byte> bytes, bool last) {
  base::ByteReader r(bytes);
  while (!done() && (last || r.left() >= kRunBytesMax)) {
    if (!count_known_) {
      left_ = r.varint();
      count_known_ = true;
      if (!r.ok() || left_ > recipe_runs_max(file_bytes_)) return std::nullopt;
      if (!visit_) recipe_.runs.reserve(std::min(left_, kRunsReserved));
      continue;
    }
    last_ = get_run(r, last_ ? &*last_ : nullptr, base_, bytes_, file_bytes_);
    if (!last_) return std::nullopt;
    --left_;
    if (visit_) {
      visit_(*last_);
    } else {
      recipe_.runs.push_back(*last_);
    }
  }
  if (last && (!r.done() || !done())) return std::nullopt;
  return bytes.size() - r.left();
}

}  // namespace varve::format
