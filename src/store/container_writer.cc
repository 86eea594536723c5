// SPDX-License-Identifier: Apache-2.0
#include "store/container_writer.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "store/container_builder.h"
#include "store/segment_output.h"
#include "store/unwritten_frames.h"

namespace varve::store {

namespace {
constexpr std::size_t kBytesPerWake = 1U << 20;
// A frame is the smallest unit of reading. Uncompressed data gains nothing from large frames, and
// small frames make random reads of a few chunks cheaper.
constexpr std::size_t kUncompressedFrameBytes = 32U << 10;
}  // namespace

ContainerWriter::ContainerWriter(SegmentStore& store, const format::FrameCodec& codec,
                                 base::ThreadPool& compressors, ContainerWriterOptions options,
                                 std::function<void(WrittenContainer)> on_written)
    : codec_(codec),
      compressors_(compressors),
      options_(std::move(options)),
      on_written_(std::move(on_written)),
      frame_bytes_(codec_.compression().codec == Codec::kNone ? kUncompressedFrameBytes
                                                              : format::kFrameRawBytesMax),
      output_(std::make_unique<SegmentOutput>(store, codec_, options_)),
      frames_(std::make_unique<UnwrittenFrames>(frame_bytes_)),
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
  work_ready_.wait(lock, [&] { return frames_->are_all_encoded(); });
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

bool ContainerWriter::is_idle() const { return frames_->is_empty() && builder_->is_empty(); }

Result<void> ContainerWriter::wait_for_room(std::unique_lock<std::mutex>& lock) {
  if (error_) VARVE_TRY(retry(lock));
  progress_.wait(lock,
                 [&] { return frames_->waiting_bytes() < options_.waiting_bytes_max || error_; });
  if (error_) return *error_;
  return {};
}

Result<void> ContainerWriter::append(ChunkId id, const Fingerprint& fingerprint,
                                     std::span<const std::byte> raw) {
  VARVE_ASSERT(!raw.empty() && raw.size() <= format::kFrameRawBytesMax);
  std::unique_lock lock(mutex_);
  VARVE_TRY(wait_for_room(lock));
  if (frames_->is_open_too_full(raw.size())) close_frame(lock);
  format::ChunkEntry entry;
  entry.id = id;
  entry.fingerprint = fingerprint;
  entry.raw_bytes = static_cast<std::uint32_t>(raw.size());
  frames_->append(entry, raw);
  return {};
}

void ContainerWriter::close_frame(std::unique_lock<std::mutex>& lock) {
  VARVE_ASSERT(lock.owns_lock());
  start_thread();  // First: without a thread, the chunks stay in the open frame.
  const auto frame = frames_->close();
  if (codec_.compression().codec == Codec::kNone) {
    // Nothing to compress: wakes the writer's thread for several frames at once.
    frame->encoded_done = true;
    if (frames_->unpacked() >= kBytesPerWake / frame_bytes_) work_ready_.notify_all();
    return;
  }
  compressors_.run([this, frame] { encode(frame); });
}

void ContainerWriter::encode(const UnwrittenFramePtr& frame) {
  auto encoded = codec_.compress(frame->raw);
  const std::lock_guard lock(mutex_);
  frame->encoded = std::move(encoded);
  frame->encoded_done = true;
  work_ready_.notify_all();
}

Result<void> ContainerWriter::append_group(std::vector<GroupFrame> group) {
  VARVE_ASSERT(!options_.readable && !group.empty());
  std::unique_lock lock(mutex_);
  VARVE_TRY(wait_for_room(lock));
  if (frames_->has_open()) close_frame(lock);
  start_thread();
  frames_->append_group(std::move(group));
  work_ready_.notify_all();
  return {};
}

std::optional<std::vector<std::byte>> ContainerWriter::read_unwritten(ChunkId id) {
  VARVE_ASSERT(options_.readable);
  const std::lock_guard lock(mutex_);
  return frames_->find(id);
}

Result<void> ContainerWriter::flush() {
  std::unique_lock lock(mutex_);
  if (error_) VARVE_TRY(retry(lock));
  if (frames_->has_open()) close_frame(lock);
  const auto target = frames_->closed();
  flush_to_ = std::max(flush_to_, target);
  work_ready_.notify_all();
  progress_.wait(lock, [&] { return frames_->written() >= target || error_; });
  if (error_) return *error_;
  if (!running_ && thread_.joinable()) thread_.join();  // Frees the ended thread's stack.
  return {};
}

Result<void> ContainerWriter::sync() {
  VARVE_TRY(flush());
  return output_->sync();
}

std::uint64_t ContainerWriter::stored_bytes() const { return output_->stored_bytes(); }

std::vector<SegmentNumber> ContainerWriter::segments() const { return output_->segments(); }

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
    const auto frame_ready = [&] { return frames_->is_ready(); };
    if (is_idle()) {
      builder_->release();
      frames_->release_spare();
      running_ = false;
      return;
    }
    const auto flush_due = [&] {
      return !builder_->is_empty() && frames_->written() + frames_->packed() >= flush_to_ &&
             frames_->written() < flush_to_;
    };
    work_ready_.wait(lock, [&] { return frame_ready() || flush_due() || stopping_; });
    if (flush_due()) {
      write_container(lock);
      if (!builder_->is_empty()) return;  // Stopped in the error state.
      continue;
    }
    if (frame_ready()) {
      const auto frame = frames_->to_pack();
      const auto group = frames_->group_to_pack();
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
      frames_->pack();
      if (!options_.readable) {
        frames_->release_raw(*frame);
        progress_.notify_all();
      }
      continue;
    }
    if (frames_->unpacked() != 0) {
      // The writer stops while compressors still work with a reference to the writer.
      work_ready_.wait(lock, frame_ready);
      continue;
    }
    return;
  }
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
  frames_->drop_packed();
  progress_.notify_all();
}

Result<void> ContainerWriter::write_container_once() {
  VARVE_TRY(output_->check_space());
  VARVE_TRY(builder_->finish([this] { return options_.numbers->take_container(); }));
  const auto& header = builder_->header();
  WrittenContainer written;
  VARVE_TRY_ASSIGN(written.record,
                   output_->append(header, builder_->header_bytes(), builder_->data_bytes()));
  written.record.live_bytes = written.record.raw_bytes;
  for (const auto& chunk : header.chunks) {
    base::append_run(written.ids, {chunk.id, 1});
    written.run_raw_bytes.resize(written.ids.size());
    written.run_raw_bytes.back() += chunk.raw_bytes;
    written.digest += format::chunk_digest(chunk.id, chunk.fingerprint, chunk.raw_bytes);
  }
  builder_->clear();
  on_written_(std::move(written));
  return {};
}

}  // namespace varve::store
