// SPDX-License-Identifier: Apache-2.0
// A run of chunks and a run of the older file share chunks only if the runs' ids overlap. Both runs
// ascend by one from chunk to chunk, so either all shared chunks are at equal offsets, or none. The
// offset of the first shared chunk decides.
#include "version/content_changes.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "restore/chunk_resolver.h"
#include "restore/run_locator.h"

namespace varve::version {
namespace {

constexpr int kLooksMax = 8;  // A chunk moved by the arranger meanwhile is located again.

/// A run of a recipe, and its place in the file.
struct PlacedRun {
  const format::RecipeRun* run = nullptr;
  std::size_t number = 0;
  std::uint64_t begin = 0;
  [[nodiscard]] std::uint64_t end() const { return begin + run->bytes; }
};

class RunCursor {
 public:
  /// Begins at the run `number`, at byte `begin` of the file.
  explicit RunCursor(const format::Recipe& recipe, std::size_t number = 0, std::uint64_t begin = 0)
      : recipe_(recipe), number_(number), begin_(begin) {}
  [[nodiscard]] std::optional<PlacedRun> get() const {
    if (number_ == recipe_.runs.size()) return std::nullopt;
    return PlacedRun{&recipe_.runs[number_], number_, begin_};
  }
  void take() { begin_ += recipe_.runs[number_++].bytes; }

 private:
  const format::Recipe& recipe_;
  std::size_t number_;
  std::uint64_t begin_;
};

/// Calls `look` again while `look` finds that a container is gone.
template <typename Look>
auto repeated(const Look& look) -> decltype(look()) {
  auto answer = look();
  for (int i = 1; i < kLooksMax && !answer && answer.error().code() == ErrorCode::kStale; ++i) {
    answer = look();
  }
  return answer;
}

/// Returns whether chunk `chunk` of the run begins at byte `offset` of the run.
Result<bool> begins_at(layout::ChunkSource& source, restore::RunLocator& locator,
                       const PlacedRun& placed, std::uint64_t chunk, std::uint64_t offset) {
  if (chunk == 0 || offset == 0) return chunk == 0 && offset == 0;
  if (offset >= placed.run->bytes) return false;
  return repeated([&]() -> Result<bool> {
    VARVE_TRY_ASSIGN(const restore::RunPart part,
                     locator.find(source, *placed.run, placed.number, offset));
    if (chunk < part.chunk || chunk >= part.chunk + std::uint64_t{part.count}) return false;
    std::uint64_t at = part.offset;
    if (chunk == part.chunk) return at == offset;
    VARVE_TRY_ASSIGN(const auto header, source.header(part.container));
    if (part.index + std::size_t{part.count} > header->chunks.size()) {
      return Error(ErrorCode::kCorrupt, "a container holds fewer chunks than it should");
    }
    for (std::uint32_t i = 0; i < chunk - part.chunk; ++i) {
      at += header->chunks[part.index + i].raw_bytes;
    }
    return at == offset;
  });
}

/// A range of the file; empty if `begin` equals `end`.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

class ContentComparison {
 public:
  ContentComparison(layout::ChunkSource& source, const VersionReader::RangeVisitor& visit)
      : source_(source), visit_(visit) {}

  Result<void> run(const format::Recipe& now, const format::Recipe& before);

 private:
  [[nodiscard]] Result<Range> shared(const PlacedRun& now, const PlacedRun& before);
  [[nodiscard]] bool pass(const PlacedRun& now, std::uint64_t begin, std::uint64_t end);

  layout::ChunkSource& source_;
  const VersionReader::RangeVisitor& visit_;
  restore::RunLocator now_;
  restore::RunLocator before_;
};

/// Returns the part of `now` found in `before` at the same offset.
Result<Range> ContentComparison::shared(const PlacedRun& now, const PlacedRun& before) {
  const Range none;
  if (now.run->is_hole() != before.run->is_hole()) return none;
  if (now.run->is_hole()) {
    return Range{std::max(now.begin, before.begin), std::min(now.end(), before.end())};
  }
  const std::uint64_t first = std::max(now.run->first.value, before.run->first.value);
  const std::uint64_t now_last = now.run->first.value + now.run->count;
  const std::uint64_t before_last = before.run->first.value + before.run->count;
  if (first >= std::min(now_last, before_last)) return none;
  std::uint64_t begin = 0;
  bool same = false;
  if (first == now.run->first.value) {
    begin = now.begin;
    if (begin < before.begin) return none;
    VARVE_TRY_ASSIGN(same, begins_at(source_, before_, before, first - before.run->first.value,
                                     begin - before.begin));
  } else {
    begin = before.begin;
    if (begin < now.begin) return none;
    VARVE_TRY_ASSIGN(
        same, begins_at(source_, now_, now, first - now.run->first.value, begin - now.begin));
  }
  if (!same) return none;
  if (now_last == before_last && now.end() != before.end()) {
    return Error(ErrorCode::kCorrupt, "two recipes give the same chunks other lengths");
  }
  return Range{begin, now_last <= before_last ? now.end() : before.end()};
}

bool ContentComparison::pass(const PlacedRun& now, std::uint64_t begin, std::uint64_t end) {
  return begin >= end || visit_({begin, end - begin, now.run->is_hole()});
}

Result<void> ContentComparison::run(const format::Recipe& now, const format::Recipe& before) {
  RunCursor old(before);
  for (RunCursor cursor(now); const auto run = cursor.get(); cursor.take()) {
    std::uint64_t at = run->begin;  // Everything before `at` is reported or shared.
    while (const auto other = old.get()) {
      if (other->begin >= run->end()) break;
      VARVE_TRY_ASSIGN(const Range same, shared(*run, *other));
      if (same.begin < same.end) {
        if (!pass(*run, at, same.begin)) return {};
        at = same.end;
      }
      if (other->end() > run->end()) break;
      old.take();
    }
    if (!pass(*run, at, run->end())) return {};
  }
  return {};
}

}  // namespace

Result<void> list_changes(layout::ChunkSource& source, const format::Recipe& now,
                          const format::Recipe& before, const VersionReader::RangeVisitor& visit) {
  return ContentComparison(source, visit).run(now, before);
}

Result<void> list_chunks(layout::ChunkSource& source, restore::RecipeIndex& recipe,
                         const FileRange& range, const VersionReader::ChunkVisitor& visit) {
  restore::RunLocator locator;
  const std::uint64_t end = range.offset + range.bytes;
  const restore::FilePosition first = recipe.find(range.offset);
  RunCursor cursor(recipe.recipe(), first.run, range.offset - first.run_offset);
  for (; const auto run = cursor.get(); cursor.take()) {
    if (run->begin >= end) return {};
    if (run->run->is_hole() || run->end() <= range.offset) continue;
    std::uint64_t at = std::max(range.offset, run->begin) - run->begin;
    while (at < run->run->bytes && run->begin + at < end) {
      restore::RunPart part;
      VARVE_TRY_ASSIGN(
          const auto header, repeated([&]() {
            auto found = locator.find(source, *run->run, run->number, at);
            if (!found) {
              return Result<std::shared_ptr<const format::ContainerHeader>>(found.error());
            }
            part = *found;
            return source.header(part.container);
          }));
      if (part.index + std::size_t{part.count} > header->chunks.size()) {
        return Error(ErrorCode::kCorrupt, "a container holds fewer chunks than it should");
      }
      VARVE_TRY_ASSIGN(const std::uint64_t place, source.place_of(part.container));
      std::uint64_t offset = run->begin + part.offset;
      for (std::uint32_t i = 0; i < part.count && offset < end; ++i) {
        const format::ChunkEntry& chunk = header->chunks[part.index + i];
        const ChunkId stored = part.stored.plus(i);  // Another id for an alias.
        VARVE_TRY(restore::verify_place(*header, part.index + i, stored));
        FileChunk found;
        found.piece.place = place;
        found.piece.offset = offset;
        found.piece.first = stored;
        found.piece.count = 1;
        found.piece.bytes = chunk.raw_bytes;
        found.piece.container = static_cast<std::uint32_t>(part.container);
        found.piece.index = part.index + i;
        found.fingerprint = chunk.fingerprint;
        const bool wanted = offset + chunk.raw_bytes > range.offset;
        if (wanted && !visit(found)) return {};
        offset += chunk.raw_bytes;
      }
      at = part.offset + part.bytes;
    }
  }
  return {};
}

}  // namespace varve::version
