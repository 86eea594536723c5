// SPDX-License-Identifier: Apache-2.0
#include "store/container_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "store/container_builder.h"
#include "store/container_rewrite.h"
#include "store/space_guard.h"

namespace varve::store {

namespace {
// Leaves room in a container for the header of a frame of tiny chunks: 144 KiB.
constexpr std::size_t kFrameChunksMax = 4096;
constexpr std::size_t kBytesPerWake = 1U << 20;
constexpr std::size_t kSpareBytes = 8U << 20;  // Limit of frame buffers kept for reuse.
// A frame is the smallest unit of reading. Uncompressed data gains nothing from large frames, and
// small frames make random reads of a few chunks cheaper.
constexpr std::size_t kUncompressedFrameBytes = 32U << 10;

Result<void> check_reserve(SegmentStore& store) {
  VARVE_TRY_ASSIGN(const SpaceInfo space, store.space());
  if (space.available_bytes() < reserved_bytes(space) + format::kContainerBytesMax) {
    return Error(ErrorCode::kNoSpace,
                 "the repository's disk is full; free some space, then continue writing");
  }
  return {};
}
}  // namespace

ContainerWriter::ContainerWriter(SegmentStore& store, const format::FrameCodec& codec,
                                 base::ThreadPool& compressors, ContainerWriterOptions options,
                                 std::function<void(WrittenContainer)> on_written)
    : store_(store),
      codec_(codec),
      compressors_(compressors),
      options_(std::move(options)),
      on_written_(std::move(on_written)),
      frame_bytes_(codec_.compression().codec == Codec::kNone ? kUncompressedFrameBytes
                                                              : format::kFrameRawBytesMax),
      builder_(std::make_unique<ContainerBuilder>(
          options_.store, format::ContainerForm{options_.volume, codec_.keys() != nullptr}, codec_,
          options_.marks)) {}

ContainerWriter::~ContainerWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_ready_.notify_all();
  if (thread_.joinable()) thread_.join();
  // After an error, the compressors may still hold frames, and the frames refer to the writer.
  std::unique_lock lock(mutex_);
  work_ready_.wait(lock, [&] {
    return std::all_of(unwritten_.begin(), unwritten_.end(),
                       [](const FramePtr& frame) { return frame->encoded_done; });
  });
}

void ContainerWriter::start_thread() {
  if (running_) return;
  if (thread_.joinable()) thread_.join();  // Has ended, or is about to without any lock.
  thread_ = std::thread([this] {
    base::name_this_thread("varve-container");
    work();
  });
  running_ = true;
}

bool ContainerWriter::is_idle() const {
  return unwritten_.empty() && !open_frame_ && builder_->is_empty();
}

Result<void> ContainerWriter::append(ChunkId id, const Fingerprint& fingerprint,
                                     std::span<const std::byte> raw) {
  VARVE_ASSERT(!raw.empty() && raw.size() <= format::kFrameRawBytesMax);
  std::unique_lock lock(mutex_);
  if (error_) VARVE_TRY(retry(lock));
  progress_.wait(lock, [&] { return waiting_bytes_ < options_.waiting_bytes_max || error_; });
  if (error_) return *error_;
  if (open_frame_ && (open_frame_->raw.size() + raw.size() > frame_bytes_ ||
                      open_frame_->chunks.size() == kFrameChunksMax)) {
    close_frame(lock);
  }
  if (!open_frame_) {
    open_frame_ = std::make_shared<Frame>();
    if (!spare_.empty()) {
      open_frame_->raw = std::move(spare_.back());
      spare_.pop_back();
      open_frame_->raw.clear();
    }
    open_frame_->raw.reserve(std::max(frame_bytes_, raw.size()));
  }
  format::ChunkEntry entry;
  entry.id = id;
  entry.fingerprint = fingerprint;
  entry.raw_bytes = static_cast<std::uint32_t>(raw.size());
  open_frame_->chunks.push_back(entry);
  open_frame_->offsets.push_back(static_cast<std::uint32_t>(open_frame_->raw.size()));
  open_frame_->raw.insert(open_frame_->raw.end(), raw.begin(), raw.end());
  return {};
}

void ContainerWriter::close_frame(std::unique_lock<std::mutex>& lock) {
  VARVE_ASSERT(lock.owns_lock());
  start_thread();  // First: without a thread, the chunks stay in the open frame.
  FramePtr frame = std::move(open_frame_);
  waiting_bytes_ += frame->raw.size();
  ++frames_closed_;
  unwritten_.push_back(frame);
  if (codec_.compression().codec == Codec::kNone) {
    // Nothing to compress: wakes the writer's thread for several frames at once.
    frame->encoded_done = true;
    if (unwritten_.size() - packed_ >= kBytesPerWake / frame_bytes_) work_ready_.notify_all();
    return;
  }
  compressors_.run([this, frame] { encode(frame); });
}

void ContainerWriter::encode(const FramePtr& frame) {
  auto encoded = codec_.compress(frame->raw);
  const std::lock_guard lock(mutex_);
  frame->encoded = std::move(encoded);
  frame->encoded_done = true;
  work_ready_.notify_all();
}

Result<void> ContainerWriter::append_group(std::vector<GroupFrame> group) {
  VARVE_ASSERT(!options_.readable && !group.empty());
  std::unique_lock lock(mutex_);
  if (error_) VARVE_TRY(retry(lock));
  progress_.wait(lock, [&] { return waiting_bytes_ < options_.waiting_bytes_max || error_; });
  if (error_) return *error_;
  if (open_frame_) close_frame(lock);
  start_thread();
  std::size_t frames = group.size();
  for (auto& one : group) {
    auto frame = std::make_shared<Frame>();
    frame->chunks = std::move(one.chunks);
    frame->raw = std::move(one.raw);
    frame->encoded = std::move(one.encoded);
    frame->prefix = one.prefix;
    frame->group = std::exchange(frames, 0);
    frame->in_group = true;
    frame->encoded_done = true;
    waiting_bytes_ += frame->raw.size();
    ++frames_closed_;
    unwritten_.push_back(std::move(frame));
  }
  work_ready_.notify_all();
  return {};
}

std::optional<std::vector<std::byte>> ContainerWriter::read_unwritten(ChunkId id) {
  VARVE_ASSERT(options_.readable);
  const std::lock_guard lock(mutex_);
  const auto copy_from = [&](const Frame& frame) -> std::optional<std::vector<std::byte>> {
    const auto& chunks = frame.chunks;
    const auto it = std::lower_bound(
        chunks.begin(), chunks.end(), id,
        [](const format::ChunkEntry& entry, ChunkId wanted) { return entry.id < wanted; });
    if (it == chunks.end() || it->id != id) return std::nullopt;
    const auto from =
        frame.raw.begin() + frame.offsets[static_cast<std::size_t>(it - chunks.begin())];
    return std::vector<std::byte>(from, from + it->raw_bytes);
  };
  if (open_frame_ && open_frame_->chunks.front().id <= id) return copy_from(*open_frame_);
  const auto after = std::upper_bound(
      unwritten_.begin(), unwritten_.end(), id,
      [](ChunkId wanted, const FramePtr& frame) { return wanted < frame->chunks.front().id; });
  if (after == unwritten_.begin()) return std::nullopt;
  return copy_from(**std::prev(after));
}

Result<void> ContainerWriter::flush() {
  std::unique_lock lock(mutex_);
  if (error_) VARVE_TRY(retry(lock));
  if (open_frame_) close_frame(lock);
  const auto target = frames_closed_;
  flush_to_ = std::max(flush_to_, target);
  work_ready_.notify_all();
  progress_.wait(lock, [&] { return frames_written_ >= target || error_; });
  if (error_) return *error_;
  if (!running_ && thread_.joinable()) thread_.join();  // Frees the ended thread's stack.
  return {};
}

Result<void> ContainerWriter::sync() {
  const std::lock_guard one(sync_mutex_);
  VARVE_TRY(flush());
  std::map<SegmentNumber, std::uint64_t> segments;
  {
    const std::lock_guard lock(mutex_);
    segments = unsynced_;
  }
  for (const auto& [segment, end] : segments) {
    if (doubtful_.contains(segment)) VARVE_TRY(rewrite_containers(store_, codec_, segment, end));
    if (auto synced = store_.sync(segment); !synced) {
      doubtful_.insert(segment);
      return synced;
    }
    doubtful_.erase(segment);
  }
  if (!segments.empty()) {
    VARVE_TRY(store_.sync_names(options_.volume ? StoredKind::kVolumes : StoredKind::kSegments));
  }
  const std::lock_guard lock(mutex_);
  for (const auto& synced : segments) {
    const auto it = unsynced_.find(synced.first);
    if (it->second == synced.second) unsynced_.erase(it);  // Else the segment has grown since.
  }
  return {};
}

std::uint64_t ContainerWriter::stored_bytes() const {
  const std::lock_guard lock(mutex_);
  return stored_bytes_;
}

std::vector<SegmentNumber> ContainerWriter::segments() const {
  const std::lock_guard lock(mutex_);
  return segments_;
}

Result<void> ContainerWriter::retry(std::unique_lock<std::mutex>& lock) {
  const auto seen = attempts_;
  retry_wanted_ = true;
  work_ready_.notify_all();
  progress_.wait(lock, [&] { return attempts_ != seen || !error_; });
  return error_ ? Result<void>(*error_) : Result<void>();
}

void ContainerWriter::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto frame_ready = [&] {
      return packed_ < unwritten_.size() && unwritten_[packed_]->encoded_done;
    };
    if (is_idle()) {
      builder_->release();
      spare_ = {};
      running_ = false;
      return;
    }
    const auto flush_due = [&] {
      return !builder_->is_empty() && frames_written_ + packed_ >= flush_to_ &&
             frames_written_ < flush_to_;
    };
    work_ready_.wait(lock, [&] { return frame_ready() || flush_due() || stopping_; });
    if (flush_due()) {
      write_container(lock);
      if (!builder_->is_empty()) return;  // Stopped in the error state.
      continue;
    }
    if (frame_ready()) {
      const FramePtr frame = unwritten_[packed_];
      std::vector<PackedFrame> group;  // The rest of the frame's group.
      for (std::size_t i = 0; i < std::max<std::size_t>(frame->group, 1); ++i) {
        const Frame& next = *unwritten_[packed_ + i];
        group.push_back({next.chunks, next.raw, &next.encoded, next.prefix, next.in_group});
      }
      // A container that has the first frame of a group takes the whole group.
      const bool begins = frame->group != 0;
      if (begins && !builder_->fits(group, {options_.container_raw_bytes_max(),
                                            options_.container_bytes_max()})) {
        write_container(lock);
        if (!builder_->is_empty()) return;  // Stopped in the error state.
      }
      lock.unlock();
      builder_->pack(group.front());
      frame->encoded.stored = {};
      lock.lock();
      ++packed_;
      if (!options_.readable) {
        release_raw(*frame);
        progress_.notify_all();
      }
      continue;
    }
    if (packed_ < unwritten_.size()) {
      // The writer stops while compressors still work with a reference to the writer.
      work_ready_.wait(lock, frame_ready);
      continue;
    }
    return;
  }
}

// The caller holds mutex_. A second call does nothing.
void ContainerWriter::release_raw(Frame& frame) {
  if (frame.raw.empty()) return;
  waiting_bytes_ -= frame.raw.size();
  if (spare_.size() < kSpareBytes / frame_bytes_) spare_.push_back(std::move(frame.raw));
  frame.raw = {};
}

// Tries until the write succeeds. Returns with an unwritten container only when stopping in the
// error state: unsynced data is then lost, as after a crash.
void ContainerWriter::write_container(std::unique_lock<std::mutex>& lock) {
  while (true) {
    lock.unlock();
    auto written = write_container_once();
    lock.lock();
    ++attempts_;
    if (written) break;
    error_ = std::move(written).error();
    progress_.notify_all();
    if (stopping_) return;
    retry_wanted_ = false;
    work_ready_.wait(lock, [&] { return retry_wanted_ || stopping_; });
  }
  error_.reset();
  retry_wanted_ = false;
  for (std::size_t i = 0; i < packed_; ++i) {
    release_raw(*unwritten_.front());
    unwritten_.pop_front();
  }
  frames_written_ += packed_;
  packed_ = 0;
  progress_.notify_all();
}

Result<void> ContainerWriter::open_segment(std::uint64_t container_bytes) {
  std::uint64_t bytes_max = options_.segment_bytes_max;
  if (bytes_max == 0) bytes_max = store_.segment_bytes(stored_bytes());
  if (options_.file_per_container) bytes_max = 0;
  if (file_ && segment_offset_ + container_bytes > bytes_max) file_.reset();
  if (file_) return {};
  segment_offset_ = 0;
  while (!file_) {
    VARVE_TRY_ASSIGN(segment_, options_.numbers->take_segment());
    if (options_.volume) segment_ = as_volume(segment_);
    auto created = store_.create(segment_);  // Empties a file named by no record.
    // A folder with the segment's name is not Varve's, so the file takes the next number.
    if (!created && created.error().code() == ErrorCode::kIsDirectory) continue;
    {
      const std::lock_guard lock(mutex_);
      segments_.push_back(segment_);
    }
    VARVE_TRY_ASSIGN(file_, std::move(created));
  }
  return {};
}

Result<void> ContainerWriter::write_container_once() {
  if (!options_.admitted) VARVE_TRY(check_reserve(store_));
  VARVE_TRY(builder_->finish([this] { return options_.numbers->take_container(); }));
  const auto& header = builder_->header();
  VARVE_TRY(open_segment(header.stored_bytes()));
  const std::array<std::span<const std::byte>, 2> parts = {builder_->header_bytes(),
                                                           builder_->data_bytes()};
  VARVE_TRY(file_->append(parts));

  WrittenContainer written;
  auto& record = written.record;
  record = format::ContainerRecord::of(header, segment_, segment_offset_);
  record.live_bytes = record.raw_bytes;
  for (const auto& chunk : header.chunks) {
    auto& ids = written.ids;
    if (ids.empty() || ids.back().first.plus(ids.back().count) != chunk.id) {
      ids.push_back({chunk.id, 0});
      written.run_raw_bytes.push_back(0);
    }
    ++ids.back().count;
    written.run_raw_bytes.back() += chunk.raw_bytes;
    written.digest += format::chunk_digest(chunk.id, chunk.fingerprint, chunk.raw_bytes);
  }
  {
    const std::lock_guard lock(mutex_);
    stored_bytes_ += header.stored_bytes();
    unsynced_[segment_] = record.end();
  }
  segment_offset_ += header.stored_bytes();
  builder_->clear();
  on_written_(std::move(written));
  return {};
}

}  // namespace varve::store
