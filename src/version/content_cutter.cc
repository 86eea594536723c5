// SPDX-License-Identifier: Apache-2.0
#include "version/content_cutter.h"

#include <algorithm>
#include <cstring>

namespace varve::version {

namespace {

constexpr std::size_t kReadAheadMin = 16U << 10;
constexpr std::size_t kReadAheadMax = 512U << 10;

using Source = StagedContent::Source;

}  // namespace

ContentCutter::ContentCutter(ContentReader& reader, const ingest::Chunker& chunker,
                             const index::FingerprintIndex& index, ingest::IngestPipeline& pipeline,
                             const StagedContent& content, StagingFile* file)
    : reader_(reader),
      chunker_(chunker),
      index_(index),
      pipeline_(pipeline),
      content_(content),
      file_(file),
      buffer_(ingest::IngestPipeline::kBatchBytes) {}

Result<void> ContentCutter::feed(const ingest::IngestPipeline::StreamPtr& stream) {
  stream_ = stream;
  while (at_ < content_.size()) {
    if (at_ >= data_end_) {
      VARVE_TRY_ASSIGN(const std::uint64_t end, hole_end(at_));
      if (end > at_) {
        VARVE_TRY(submit());
        VARVE_TRY(pipeline_.append_hole(stream_, end - at_));
        at_ = end;
        filled_ = 0;
        if (at_ == content_.size()) break;
      }
      VARVE_TRY_ASSIGN(data_end_, content_.seek(at_, SeekFor::kHole));
      ahead_ = kReadAheadMin;
    }
    VARVE_TRY_ASSIGN(const bool taken, take_chunks());
    if (!taken) VARVE_TRY(cut_chunk());
  }
  return submit();
}

Result<std::uint64_t> ContentCutter::hole_end(std::uint64_t offset) {
  auto data = content_.seek(offset, SeekFor::kData);
  if (data) return *data;
  if (data.error().code() == ErrorCode::kPastEnd) return content_.size();
  return std::move(data).error();
}

Result<bool> ContentCutter::take_chunks() {
  const auto range = content_.at(at_);
  if (range.source != Source::kRecipe) return false;
  OpenRecipe& recipe = *range.recipe;
  const auto place = recipe.find(range.source_offset);
  const auto& run = recipe.recipe().runs[place.run];
  if (run.is_hole()) return false;  // A hole in a block with data: zeros.
  std::uint32_t index = 0;
  if (place.run_offset != 0) {
    VARVE_TRY_ASSIGN(const auto chunk, reader_.chunk_at(recipe, range.source_offset));
    if (chunk.offset != range.source_offset) return false;
    index = chunk.index;
  }
  const std::uint32_t allowed = index_.covers(run.first.plus(index), run.count - index);
  if (allowed == 0) return false;
  // Offsets in the recipe: the end of the run, and the end of the range if earlier.
  const std::uint64_t run_end = range.source_offset - place.run_offset + run.bytes;
  const std::uint64_t stop = std::min(run_end, range.source_offset + (range.end - at_));
  format::RecipeRun taken{run.first.plus(index), run.count - index, stop - range.source_offset};
  // The last chunk before a hole or the recipe's end was cut by force: the content did not set the
  // boundary.
  const bool forced =
      place.run + 1 == recipe.recipe().runs.size() || recipe.recipe().runs[place.run + 1].is_hole();
  const bool whole = stop == run_end && (!forced || at_ + taken.bytes == data_end_);
  if (!whole) {
    const std::uint64_t last = stop == run_end ? stop - 1 : stop;
    VARVE_TRY_ASSIGN(const auto chunk, reader_.chunk_at(recipe, last));
    taken.count = chunk.index - index;
    taken.bytes = chunk.offset - range.source_offset;
  }
  if (allowed < taken.count) {
    taken.count = allowed;
    // The first forbidden chunk begins at the end of the last allowed chunk.
    std::uint64_t end = range.source_offset;
    for (std::uint32_t i = 0; i < allowed;) {
      VARVE_TRY_ASSIGN(const auto chunk, reader_.chunk_at(recipe, end));
      end = chunk.offset + chunk.bytes;
      i = chunk.index + 1 - index;
    }
    taken.bytes = end - range.source_offset;
  }
  if (taken.count == 0) return false;
  VARVE_TRY(submit());
  VARVE_TRY(pipeline_.append_chunks(stream_, taken));
  at_ += taken.bytes;
  filled_ = 0;
  ahead_ = kReadAheadMin;
  return true;
}

Result<void> ContentCutter::fill(std::size_t bytes) {
  if (filled_ - cut_ >= bytes) return {};
  bytes = std::min<std::uint64_t>(std::max(bytes, ahead_), data_end_ - at_);
  if (cut_ + bytes > buffer_.size()) {
    const std::size_t old_cut = cut_;
    VARVE_TRY(submit());
    std::memmove(buffer_.data(), buffer_.data() + old_cut, filled_ - old_cut);
    filled_ -= old_cut;
  }
  const std::uint64_t from = at_ + (filled_ - cut_);
  const std::size_t more = bytes - (filled_ - cut_);
  VARVE_TRY(read(from, {buffer_.data() + filled_, more}));
  filled_ += more;
  ahead_ = std::min(ahead_ * 2, kReadAheadMax);
  return {};
}

Result<void> ContentCutter::cut_chunk() {
  const std::uint64_t left = data_end_ - at_;
  // A boundary inside the available bytes does not depend on the bytes that follow.
  for (std::size_t wanted = std::max<std::size_t>(filled_ - cut_, kReadAheadMin);; wanted *= 2) {
    const std::size_t room = std::min<std::uint64_t>({wanted, left, chunker_.sizes().max});
    VARVE_TRY(fill(room));
    const std::size_t have = filled_ - cut_;
    const std::size_t n = chunker_.next({buffer_.data() + cut_, have});
    if (n == have && have < left && have < chunker_.sizes().max) continue;
    lengths_.push_back(static_cast<std::uint32_t>(n));
    cut_ += n;
    at_ += n;
    return {};
  }
}

Result<void> ContentCutter::read(std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const auto range = content_.at(offset);
    const auto part = out.first(std::min<std::uint64_t>(out.size(), range.end - offset));
    std::size_t got = part.size();
    if (range.source == Source::kRecipe) {
      VARVE_TRY_ASSIGN(got, reader_.read(*range.recipe, range.source_offset, part));
    } else if (range.source == Source::kFile) {
      VARVE_TRY_ASSIGN(got, file_->read(range.source_offset, part));
    } else {
      std::memset(part.data(), 0, part.size());
    }
    if (got == 0) {
      return Error(ErrorCode::kCorrupt, "a file ends before the bytes that it should hold");
    }
    offset += got;
    out = out.subspan(got);
  }
  return {};
}

Result<void> ContentCutter::submit() {
  if (cut_ == 0) return {};
  VARVE_TRY(pipeline_.append_cut(stream_, {buffer_.data(), cut_}, lengths_));
  lengths_.clear();
  cut_ = 0;
  return {};
}

}  // namespace varve::version
