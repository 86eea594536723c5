// SPDX-License-Identifier: Apache-2.0
#include "restore/read_handle.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace varve::restore {
namespace {
// A chunk moves at most once per version, so the second attempt nearly always finds all chunks.
constexpr unsigned kMovesMax = 4;
// A smaller file's headers are in memory after a few reads anyway.
constexpr std::uint64_t kHeadersFileBytesMin = 32U << 20;
}  // namespace

FileHandle::FileHandle(const ReadContext& context, ReadableFile file)
    : context_(context),
      file_(std::move(file)),
      index_(file_.content.recipe),
      headers_(index_.file_bytes() < kHeadersFileBytesMin || file_.source->answers_later()
                   ? nullptr
                   : std::make_shared<HeaderAnnouncer>(file_)) {}

void FileHandle::Stretch::advance(const format::Recipe& recipe, std::size_t bytes) {
  out = out.subspan(bytes);
  at.data_offset += bytes;
  at.run_offset += bytes;
  while (at.run < recipe.runs.size() && at.run_offset >= recipe.runs[at.run].bytes) {
    at.run_offset -= recipe.runs[at.run++].bytes;
  }
}

template <typename ReadStretch>
bool FileHandle::for_each_stretch(std::uint64_t offset, std::span<std::byte> out,
                                  const ReadStretch& read_stretch) {
  const auto& runs = index_.recipe().runs;
  FilePosition at = index_.find(offset);
  while (!out.empty()) {
    const FilePosition begin = at;
    const bool is_hole = runs[at.run].is_hole();
    std::size_t bytes = 0;
    while (bytes < out.size() && at.run < runs.size() && runs[at.run].is_hole() == is_hole) {
      const std::uint64_t left = runs[at.run].bytes - at.run_offset;
      bytes += static_cast<std::size_t>(std::min<std::uint64_t>(left, out.size() - bytes));
      ++at.run;
      at.run_offset = 0;
    }
    const auto part = out.first(bytes);
    if (is_hole) {
      std::memset(part.data(), 0, part.size());
    } else {
      if (!read_stretch(Stretch{begin, part})) return false;
      at.data_offset += bytes;
    }
    out = out.subspan(bytes);
  }
  return true;
}

Result<ReadBytes> FileHandle::read_as(const ReadRequest& request) {
  const std::uint64_t offset = request.offset;
  const std::uint64_t left = offset < index_.file_bytes() ? index_.file_bytes() - offset : 0;
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(request.bytes, left));
  if (bytes == 0) return ReadBytes{{}, std::size_t{0}};
  if (request.may_lend) {
    auto lent = request.may_wait ? lend(offset, bytes) : lend_whole(offset, bytes);
    if (!lent.bytes.empty()) return ReadBytes{std::move(lent), {}};
  }
  if (!request.memory) return ReadBytes{};
  const auto out = request.memory(bytes).first(bytes);
  if (!request.may_wait && !copy_from_memory(offset, out)) return ReadBytes{};
  if (request.may_wait) VARVE_TRY(copy(offset, out));
  return ReadBytes{{}, bytes};
}

Result<void> FileHandle::copy(std::uint64_t offset, std::span<std::byte> out) {
  auto start_session_at = note_read(offset, out.size());
  std::optional<Error> error;
  const bool done = for_each_stretch(offset, out, [&](const Stretch& stretch) {
    auto result = read_stretch(stretch, start_session_at);
    if (!result) error = std::move(result).error();
    return !error;
  });
  if (!done) return std::move(*error);
  context_.bytes_delivered->add(out.size());
  if (was_read_whole()) context_.sessions->on_whole_file(file_);
  return {};
}

bool FileHandle::copy_from_memory(std::uint64_t offset, std::span<std::byte> out) {
  const bool done = for_each_stretch(offset, out, [&](Stretch stretch) {
    while (!stretch.out.empty()) {
      std::size_t n = copy_from_session(stretch.at.data_offset, stretch.out);
      if (n == 0) n = copy_from_last_frame(stretch.at.data_offset, stretch.out);
      if (n == 0) return false;
      stretch.advance(index_.recipe(), n);
    }
    return true;
  });
  if (!done) return false;
  // Starting a session may wait, so a later read starts the session.
  static_cast<void>(note_read(offset, out.size()));
  context_.bytes_delivered->add(out.size());
  return true;
}

Result<void> FileHandle::read_stretch(Stretch stretch,
                                      std::optional<std::uint64_t>& start_session_at) {
  while (!stretch.out.empty()) {
    std::size_t n = copy_from_session(stretch.at.data_offset, stretch.out);
    if (n == 0 && await_session(stretch.at.data_offset)) {
      n = copy_from_session(stretch.at.data_offset, stretch.out);
    }
    if (n == 0 && start_session_at) {
      start_session(*std::exchange(start_session_at, std::nullopt));
      continue;
    }
    if (n == 0) return read_random(stretch);
    stretch.advance(index_.recipe(), n);
  }
  return {};
}

bool FileHandle::await_session(std::uint64_t data_offset) {
  const auto session = context_.sessions->find_expecting(file_, data_offset);
  return session && session->await(file_.content.ordinal, data_offset);
}

std::size_t FileHandle::copy_from_session(std::uint64_t data_offset, std::span<std::byte> out) {
  const auto taken = context_.sessions->take(this, file_, data_offset, out.size());
  if (!taken) return 0;
  const auto bytes = taken->span();
  std::memcpy(out.data(), bytes.data(), bytes.size());
  note_from_session();
  return bytes.size();
}

void FileHandle::note_from_session() {
  const std::lock_guard lock(mutex_);
  from_session_ = true;
}

/// Returns the number of bytes from `at` to the next hole, at most `bytes_max`.
std::uint64_t FileHandle::bytes_to_hole(const FilePosition& at, std::uint64_t bytes_max) const {
  const auto& runs = index_.recipe().runs;
  std::uint64_t bytes = 0;
  for (std::size_t run = at.run; run < runs.size() && !runs[run].is_hole(); ++run) {
    bytes += runs[run].bytes - (run == at.run ? at.run_offset : 0);
    if (bytes >= bytes_max) return bytes_max;
  }
  return bytes;
}

SharedBytes FileHandle::lend_from_session(std::uint64_t offset, std::uint64_t data_offset,
                                          std::size_t bytes, TakeFor purpose) {
  auto taken = context_.sessions->take(this, file_, data_offset, bytes, purpose);
  if (!taken) return {};
  note_from_session();
  static_cast<void>(note_read(offset, taken->count));
  context_.bytes_delivered->add(taken->count);
  const auto lent = taken->span();
  return {std::move(taken->area), lent};
}

/// Lends at most `bytes` from an existing session, after waiting until the bytes are assembled.
/// Returns nothing for a hole, or without a session.
SharedBytes FileHandle::lend(std::uint64_t offset, std::size_t bytes) {
  const FilePosition at = index_.find(offset);
  bytes = static_cast<std::size_t>(bytes_to_hole(at, bytes));
  if (bytes == 0) return {};
  auto lent = lend_from_session(offset, at.data_offset, bytes, TakeFor::kLending);
  if (lent.bytes.empty() && await_session(at.data_offset)) {
    lent = lend_from_session(offset, at.data_offset, bytes, TakeFor::kLending);
  }
  return lent;
}

/// Lends all of `bytes` without waiting, or nothing.
SharedBytes FileHandle::lend_whole(std::uint64_t offset, std::size_t bytes) {
  const FilePosition at = index_.find(offset);
  if (bytes_to_hole(at, bytes) < bytes) return {};
  return lend_from_session(offset, at.data_offset, bytes, TakeFor::kLendingWhole);
}

std::size_t FileHandle::copy_from_last_frame(std::uint64_t data_offset, std::span<std::byte> out) {
  FileFrame last;
  {
    const std::lock_guard lock(mutex_);
    last = last_frame_;
  }
  const auto frame = last.frame.lock();
  if (!frame || data_offset < last.begin || data_offset >= last.end) return 0;
  const auto n =
      static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), last.end - data_offset));
  const std::size_t at = last.frame_offset + static_cast<std::size_t>(data_offset - last.begin);
  std::memcpy(out.data(), frame->bytes().data() + at, n);
  return n;
}

RandomRead FileHandle::random_read(const FilePosition& at) {
  return {file_.version_key, file_.source,   &locator_,   &index_.recipe().runs[at.run], at.run,
          at.run_offset,     at.data_offset, has_jumped()};
}

/// Returns whether the last read does not continue an earlier read. A read from the file's start
/// may begin a sequence.
bool FileHandle::has_jumped() {
  const std::lock_guard lock(mutex_);
  return streak_ == 1 && streak_begin_ > 0;
}

/// Returns the bytes of the stretch within the stretch's first run.
std::span<std::byte> FileHandle::first_run(const Stretch& stretch) const {
  const std::uint64_t left = index_.recipe().runs[stretch.at.run].bytes - stretch.at.run_offset;
  return stretch.out.first(
      static_cast<std::size_t>(std::min<std::uint64_t>(left, stretch.out.size())));
}

Result<void> FileHandle::try_random(Stretch stretch, FileFrame& last) {
  std::vector<RandomReader::Part> parts;
  while (!stretch.out.empty()) {
    const auto out = first_run(stretch);
    VARVE_TRY(context_.random->plan(random_read(stretch.at), out, parts));
    stretch.advance(index_.recipe(), out.size());
  }
  return context_.random->read(parts, last);
}

Result<void> FileHandle::read_random(const Stretch& stretch) {
  if (headers_) headers_->on_read(*context_.prefetchers);
  FileFrame last;
  auto read = try_random(stretch, last);
  // Chunks may move during the read. A new attempt locates the chunks again.
  for (unsigned i = 0; i < kMovesMax && !read && read.error().code() == ErrorCode::kStale; ++i) {
    read = try_random(stretch, last);
  }
  if (!read && read.error().code() == ErrorCode::kStale) {
    return Error(ErrorCode::kCorrupt, read.error().message());
  }
  if (!read) return read;
  const std::lock_guard lock(mutex_);
  last_frame_ = std::move(last);
  return {};
}

/// Tracks the order of the reads. Returns the offset at which a session should start, if a session
/// is due.
std::optional<std::uint64_t> FileHandle::note_read(std::uint64_t offset, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t end = offset + bytes;
  const std::uint64_t last_end = streak_end_;
  const bool follows =
      streak_ > 0 && offset >= streak_end_ && offset <= streak_end_ + kReorderBytes;
  const bool was_overtaken = streak_ > 0 && end == last_offset_;
  last_offset_ = offset;
  streak_bytes_ += bytes;
  if (was_overtaken) {
    streak_begin_ = std::min(streak_begin_, offset);
    ++streak_;
    return std::nullopt;
  }
  if (!follows) {
    streak_ = 1;
    streak_begin_ = offset;
    streak_end_ = end;
    streak_bytes_ = bytes;
    return std::nullopt;
  }
  ++streak_;
  streak_end_ = end;
  // A reader starting at the beginning of a file is more likely to read all of the file.
  if (streak_ < (streak_begin_ == 0 ? 2U : 3U)) return std::nullopt;
  // Overtaking requests leave few gaps; a skipping reader leaves many.
  if (streak_bytes_ < (streak_end_ - streak_begin_) / 2) return std::nullopt;
  return last_end;
}

bool FileHandle::was_read_whole() {
  const std::uint64_t size = index_.file_bytes();
  const std::lock_guard lock(mutex_);
  return streak_begin_ == 0 && streak_end_ == size && !from_session_;
}

/// Returns the stream start at the chunk with the first data byte at or after `at`.
Result<StreamStart> FileHandle::locate_start(const FilePosition& at) {
  const format::RecipeRun& run = index_.recipe().runs[at.run];
  VARVE_TRY_ASSIGN(const auto part, locator_.find(*file_.source, run, at.run, at.run_offset));
  VARVE_TRY_ASSIGN(const auto header, file_.source->header(part.container));
  std::uint32_t chunk = 0;
  std::uint64_t offset = part.offset;
  while (chunk < part.count && part.index + chunk < header->chunks.size()) {
    const std::uint32_t bytes = header->chunks[part.index + chunk].raw_bytes;
    if (offset + bytes > at.run_offset) break;
    offset += bytes;
    ++chunk;
  }
  if (offset > at.run_offset || chunk == part.count) {
    return Error(ErrorCode::kCorrupt, "a container holds less than it should");
  }
  const std::uint32_t skipped = part.chunk + chunk;
  return StreamStart{file_.content,
                     at.run,
                     {run.first.plus(skipped), run.count - skipped, run.bytes - offset},
                     at.data_offset - (at.run_offset - offset)};
}

void FileHandle::start_session(std::uint64_t offset) {
  if (!context_.sessions->has_room(this)) return;
  const auto& runs = index_.recipe().runs;
  FilePosition at = index_.find(offset);
  while (at.run < runs.size() && runs[at.run].is_hole()) {
    ++at.run;
    at.run_offset = 0;
  }
  if (at.run == runs.size()) return;
  auto start = locate_start(at);
  if (!start) return;  // A random read of the same bytes reports the error.
  const std::uint64_t position = start->data_offset;
  auto future = file_.future ? file_.future() : nullptr;
  context_.sessions->start(
      file_, std::make_unique<FileStream>(std::move(*start), std::move(future)), position, this);
}

}  // namespace varve::restore
