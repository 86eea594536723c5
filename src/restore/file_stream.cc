// SPDX-License-Identifier: Apache-2.0
#include "restore/file_stream.h"

#include <algorithm>
#include <utility>

namespace varve::restore {

FileStream::FileStream(std::optional<StreamStart> start, std::unique_ptr<FutureFiles> future)
    : future_(std::move(future)) {
  if (!start) return;
  // Position 0 is the start of the first file, even if the stream begins later in the file.
  run_number_ = start->run_number;
  run_position_ = start->data_offset;
  first_run_ = start->run;
  add(std::move(start->content), 0);
}

void FileStream::add(FileContent content, std::uint64_t position) {
  const std::uint64_t bytes = content.recipe->data_bytes();
  if (bytes == 0) return;
  end_ = position + bytes;
  {
    const std::lock_guard lock(mutex_);
    known_.push_back({content.ordinal, files_++, position, bytes});
  }
  pending_.push_back(std::move(content));
}

bool FileStream::pull() {
  if (!future_) return false;
  auto file = future_->next();
  if (!file) error_ = std::move(file).error();
  if (!file || !file->has_value()) {
    future_.reset();
    return false;
  }
  add(std::move(**file), end_);
  return true;
}

Result<std::optional<StreamRun>> FileStream::next() {
  while (true) {
    if (pending_.empty()) {
      if (!pull()) {
        if (error_) return *error_;
        return std::optional<StreamRun>();
      }
      continue;
    }
    const auto& runs = pending_.front().recipe->runs;
    while (run_number_ < runs.size()) {
      format::RecipeRun run = runs[run_number_++];
      if (first_run_) run = *std::exchange(first_run_, std::nullopt);
      if (run.is_hole() || run.bytes == 0) continue;
      const StreamRun out{run.first, run.count, run.bytes, run_position_};
      run_position_ += run.bytes;
      return std::optional<StreamRun>(out);
    }
    pending_.pop_front();
    run_number_ = 0;
  }
}

void FileStream::look_ahead(std::uint64_t position, std::size_t files, std::uint64_t bytes) {
  const auto is_enough = [&] {
    const std::lock_guard lock(mutex_);
    const auto after = std::upper_bound(
        known_.begin(), known_.end(), position,
        [](std::uint64_t at, const StreamFile& file) { return at < file.position; });
    return static_cast<std::size_t>(known_.end() - after) >= files || end_ > position + bytes;
  };
  while (!is_enough() && pull()) {
  }
}

std::optional<StreamFile> FileStream::find(std::uint64_t ordinal) const {
  const std::lock_guard lock(mutex_);
  const auto it = std::lower_bound(
      known_.begin(), known_.end(), ordinal,
      [](const StreamFile& file, std::uint64_t wanted) { return file.ordinal < wanted; });
  if (it == known_.end() || it->ordinal != ordinal) return std::nullopt;
  return *it;
}

void FileStream::forget_before(std::uint64_t position) {
  const std::lock_guard lock(mutex_);
  while (!known_.empty() && known_.front().position + known_.front().bytes <= position) {
    known_.pop_front();
  }
}

}  // namespace varve::restore
