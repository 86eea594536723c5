// SPDX-License-Identifier: Apache-2.0
#include "ingest/ingest_pipeline.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.h"

namespace varve::ingest {

namespace {
// Batch size for small finished files, gathered until a task is worthwhile.
constexpr std::size_t kSharedBytes = 512U << 10;
constexpr std::size_t kSmallFileBytes = 256U << 10;
constexpr std::size_t kSharedPieces = 8192;
constexpr std::size_t kBuffersKept = 40;
constexpr std::size_t kSmallBufferBytes = 4096;
}  // namespace

IngestPipeline::IngestPipeline(const IngestParts& parts)
    : chunker_(parts.chunker),
      fingerprinter_(parts.fingerprinter),
      index_(parts.index),
      policy_(parts.policy),
      layout_(parts.layout),
      pool_(parts.fingerprint_pool),
      spill_(parts.spill),
      metrics_(parts.metrics),
      chunk_max_(parts.chunker.sizes().max),
      look_ahead_bytes_(parts.policy.wants() == DedupPolicy::Wants::kNothing
                            ? 0
                            : parts.policy.look_ahead_bytes()) {}

IngestPipeline::~IngestPipeline() {
  std::unique_lock lock(commit_mutex_);
  progress_.wait(lock, [&] { return tasks_ == 0 && !committing_; });
}

IngestPipeline::StreamPtr IngestPipeline::start(Content content) {
  auto stream = std::make_shared<IngestStream>();
  stream->recipe_ = std::move(content.recipe);
  if (content.tail.empty()) return stream;
  const std::lock_guard lock(input_mutex_);
  reserve(*stream, content.tail.size());
  std::memcpy(stream->buffer_.data.get(), content.tail.data(), content.tail.size());
  stream->used_ = content.tail.size();
  held_ += stream->used_;
  list_idle(stream);
  return stream;
}

Result<void> IngestPipeline::append(const StreamPtr& stream, std::span<const std::byte> data) {
  const std::lock_guard lock(input_mutex_);
  VARVE_ASSERT(!stream->finished_);
  VARVE_TRY(resume());
  if (idle_bytes_ > kIdleBytesMax) VARVE_TRY(trim_idle(nullptr));
  VARVE_TRY(load_spilled(*stream));
  metrics_.received_bytes.add(data.size());
  unlist_idle(*stream);
  while (!data.empty()) {
    const std::size_t full = kBatchBytes + chunk_max_;
    const std::size_t n = std::min(data.size(), full - stream->used_);
    reserve(*stream, stream->used_ + n);
    std::memcpy(stream->buffer_.data.get() + stream->used_, data.data(), n);
    stream->used_ += n;
    held_ += n;
    data = data.subspan(n);
    if (stream->used_ >= kBatchBytes) VARVE_TRY(cut(stream, false));
  }
  list_idle(stream);
  // The stream keeps the accepted bytes: the next call reports an error from here, and accepts
  // nothing.
  static_cast<void>(trim_idle(stream));
  return {};
}

Result<void> IngestPipeline::append_hole(const StreamPtr& stream, std::uint64_t bytes) {
  const std::lock_guard lock(input_mutex_);
  if (bytes == 0) return {};
  VARVE_TRY(resume());
  VARVE_TRY(load_spilled(*stream));
  unlist_idle(*stream);
  VARVE_TRY(cut(stream, true));
  share_ready(stream, {ChunkId{}, 0, bytes});
  return {};
}

Result<void> IngestPipeline::append_cut(const StreamPtr& stream, std::span<const std::byte> data,
                                        std::span<const std::uint32_t> lengths) {
  const std::lock_guard lock(input_mutex_);
  VARVE_ASSERT(!stream->finished_ && stream->used_ == 0 && !stream->spilled_);
  VARVE_ASSERT(data.size() <= kBatchBytes + chunk_max_);
  if (data.empty()) return {};
  VARVE_TRY(resume());
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (const std::uint32_t length : lengths) {
    Piece piece;
    piece.offset = static_cast<std::uint32_t>(at);
    piece.bytes = length;
    piece.stream = stream;
    pieces.push_back(std::move(piece));
    at += length;
  }
  VARVE_ASSERT(at == data.size());
  metrics_.received_bytes.add(at);
  metrics_.cut_chunks.add(pieces.size());
  held_ += at;
  count_in_flight(stream, pieces.size());
  if (data.size() <= kSmallFileBytes) {
    share(data, pieces);
    return {};
  }
  submit_shared();
  auto batch = std::make_shared<Batch>();
  batch->buffer = take_buffer(data.size());
  std::memcpy(batch->buffer.data.get(), data.data(), data.size());
  batch->used = data.size();
  batch->pieces = std::move(pieces);
  submit(std::move(batch));
  return {};
}

Result<void> IngestPipeline::append_chunks(const StreamPtr& stream, const format::RecipeRun& run) {
  const std::lock_guard lock(input_mutex_);
  VARVE_ASSERT(!stream->finished_ && stream->used_ == 0 && !stream->spilled_);
  if (run.bytes == 0) return {};
  VARVE_TRY(resume());
  share_ready(stream, run);
  return {};
}

Result<void> IngestPipeline::finish(const StreamPtr& stream) {
  const std::lock_guard lock(input_mutex_);
  unlist_idle(*stream);
  VARVE_TRY(load_spilled(*stream));
  stream->finished_ = true;
  return cut(stream, true);
}

void IngestPipeline::discard(const StreamPtr& stream) {
  const std::lock_guard lock(input_mutex_);
  unlist_idle(*stream);
  held_ -= stream->spilled_ ? stream->spilled_->bytes : stream->used_;
  stream->used_ = 0;
  give_back(std::exchange(stream->buffer_, {}));
  if (stream->spilled_) spill_.free(*std::exchange(stream->spilled_, std::nullopt));
}

Result<Content> IngestPipeline::settle(const StreamPtr& stream) {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(input_mutex_);
    VARVE_TRY(resume());
    VARVE_TRY(load_spilled(*stream));
    unlist_idle(*stream);
    VARVE_TRY(cut(stream, false));
    list_idle(stream);
    submit_shared();
    ticket = next_ticket_;
  }
  VARVE_TRY(wait_for_ticket(ticket));
  return snapshot(stream);
}

Result<Content> IngestPipeline::snapshot(const StreamPtr& stream) {
  const std::lock_guard lock(input_mutex_);
  Content content;
  {
    const std::lock_guard commit(commit_mutex_);
    content.recipe = stream->recipe_;
    if (stream->pieces_in_flight_ != 0) return content;
  }
  if (stream->spilled_) {
    content.tail.resize(stream->spilled_->bytes);
    VARVE_TRY(spill_.read(*stream->spilled_, content.tail));
  } else if (stream->used_ != 0) {
    content.tail.assign(stream->buffer_.data.get(), stream->buffer_.data.get() + stream->used_);
  }
  return content;
}

std::optional<format::Recipe> IngestPipeline::take_finished(const StreamPtr& stream) {
  const std::lock_guard lock(input_mutex_);
  // The stream is not finished if finish() could not read the spilled tail back.
  if (!stream->finished_) return std::nullopt;
  const std::lock_guard commit(commit_mutex_);
  if (stream->pieces_in_flight_ != 0) return std::nullopt;
  return std::move(stream->recipe_);
}

Result<void> IngestPipeline::drain() {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(input_mutex_);
    VARVE_TRY(resume());
    submit_shared();
    ticket = next_ticket_;
  }
  return wait_for_ticket(ticket);
}

Result<void> IngestPipeline::status() {
  const std::lock_guard lock(commit_mutex_);
  if (error_) return *error_;
  return {};
}

// ---- Buffers and cutting; input_mutex_ is held. ----

void IngestPipeline::reserve(IngestStream& stream, std::size_t bytes) {
  if (stream.buffer_.capacity >= bytes) return;
  auto larger = take_buffer(bytes);
  if (stream.used_ != 0) std::memcpy(larger.data.get(), stream.buffer_.data.get(), stream.used_);
  give_back(std::exchange(stream.buffer_, std::move(larger)));
}

IngestStream::Buffer IngestPipeline::take_buffer(std::size_t bytes) {
  const std::size_t full = kBatchBytes + chunk_max_;
  std::size_t capacity = std::bit_ceil(std::max(bytes, kSmallBufferBytes));
  if (capacity > kSmallFileBytes) {
    capacity = full;
    const std::lock_guard lock(buffers_mutex_);
    if (!buffers_.empty()) {
      auto buffer = std::move(buffers_.back());
      buffers_.pop_back();
      return buffer;
    }
  }
  return {std::make_unique_for_overwrite<std::byte[]>(capacity), capacity};
}

void IngestPipeline::give_back(IngestStream::Buffer buffer) {
  if (buffer.capacity < kBatchBytes + chunk_max_) return;
  const std::lock_guard lock(buffers_mutex_);
  if (buffers_.size() < kBuffersKept) buffers_.push_back(std::move(buffer));
}

bool IngestPipeline::drop_spare_buffers() {
  std::vector<IngestStream::Buffer> spare;
  const std::lock_guard lock(buffers_mutex_);
  spare.swap(buffers_);
  return !spare.empty();
}

void IngestPipeline::list_idle(const StreamPtr& stream) {
  if (stream->buffer_.capacity == 0) return;
  stream->idle_place_ = idle_.insert(idle_.end(), stream);
  stream->idle_listed_ = true;
  idle_bytes_ += stream->buffer_.capacity;
}

void IngestPipeline::unlist_idle(IngestStream& stream) {
  if (!stream.idle_listed_) return;
  idle_bytes_ -= stream.buffer_.capacity;
  idle_.erase(stream.idle_place_);
  stream.idle_listed_ = false;
}

Result<void> IngestPipeline::load_spilled(IngestStream& stream) {
  if (!stream.spilled_) return {};
  const auto slot = *stream.spilled_;
  reserve(stream, slot.bytes);
  VARVE_TRY(spill_.read(slot, {stream.buffer_.data.get(), slot.bytes}));
  stream.used_ = slot.bytes;
  stream.spilled_.reset();
  spill_.free(slot);
  return {};
}

// Cuts the longest idle streams and spills their tails until the bound holds. If spilling fails,
// the tail stays in memory: append() accepted the bytes, so no byte must be lost.
Result<void> IngestPipeline::trim_idle(const StreamPtr& keep) {
  while (idle_bytes_ > kIdleBytesMax && idle_.front() != keep) {
    const StreamPtr stream = idle_.front();
    unlist_idle(*stream);
    auto done = cut(stream, false);
    if (done && stream->used_ != 0) {
      auto slot = spill_.put({stream->buffer_.data.get(), stream->used_});
      if (slot) {
        stream->spilled_ = *slot;
        stream->used_ = 0;
      } else {
        done = std::move(slot).error();
      }
    }
    if (!done) {
      list_idle(stream);
      return done;
    }
    give_back(std::exchange(stream->buffer_, {}));
  }
  return {};
}

// Cuts all whole chunks (with `all`, everything) and submits them. The rest stays as the tail.
Result<void> IngestPipeline::cut(const StreamPtr& stream, bool all) {
  std::vector<Piece> pieces;
  std::size_t at = 0;
  const std::byte* data = stream->buffer_.data.get();
  while (stream->used_ - at >= chunk_max_ || (all && at < stream->used_)) {
    const std::size_t n = chunker_.next({data + at, stream->used_ - at});
    Piece piece;
    piece.offset = static_cast<std::uint32_t>(at);
    piece.bytes = static_cast<std::uint32_t>(n);
    piece.stream = stream;
    pieces.push_back(std::move(piece));
    at += n;
  }
  if (pieces.empty()) return {};
  metrics_.cut_chunks.add(pieces.size());
  count_in_flight(stream, pieces.size());
  if (all && stream->used_ <= kSmallFileBytes) {
    share({data, at}, pieces);
    stream->used_ = 0;
    give_back(std::exchange(stream->buffer_, {}));
    return {};
  }
  // The batch takes over the buffer; the tail is copied to a new buffer.
  submit_shared();
  const std::size_t rest = stream->used_ - at;
  auto batch = std::make_shared<Batch>();
  batch->pieces = std::move(pieces);
  batch->used = at;
  batch->buffer = std::exchange(stream->buffer_, {});
  stream->used_ = 0;
  if (rest != 0) {
    reserve(*stream, all ? rest : kBatchBytes);
    std::memcpy(stream->buffer_.data.get(), batch->buffer.data.get() + at, rest);
    stream->used_ = rest;
  }
  submit(std::move(batch));
  return {};
}

void IngestPipeline::count_in_flight(const StreamPtr& stream, std::size_t pieces) {
  const std::lock_guard commit(commit_mutex_);
  stream->pieces_in_flight_ += pieces;
}

void IngestPipeline::share(std::span<const std::byte> data, const std::vector<Piece>& pieces) {
  if (shared_ && shared_->used + data.size() > shared_->buffer.capacity && shared_->used != 0) {
    submit_shared();
  }
  if (!shared_) shared_ = std::make_shared<Batch>();
  if (shared_->buffer.capacity == 0) shared_->buffer = take_buffer(kBatchBytes);
  std::memcpy(shared_->buffer.data.get() + shared_->used, data.data(), data.size());
  for (const auto& piece : pieces) {
    shared_->pieces.push_back(piece);
    shared_->pieces.back().offset += static_cast<std::uint32_t>(shared_->used);
  }
  shared_->used += data.size();
  if (shared_->used >= kSharedBytes || shared_->pieces.size() >= kSharedPieces) submit_shared();
}

// Uses the shared batch: before the stream submits its own batch, the stream submits the shared
// batch.
void IngestPipeline::share_ready(const StreamPtr& stream, const format::RecipeRun& run) {
  count_in_flight(stream, 1);
  if (!shared_) shared_ = std::make_shared<Batch>();
  Piece piece;
  piece.ready = run;
  piece.stream = stream;
  shared_->pieces.push_back(std::move(piece));
  if (shared_->pieces.size() >= kSharedPieces) submit_shared();
}

void IngestPipeline::submit_shared() {
  if (shared_) submit(std::exchange(shared_, nullptr));
}

void IngestPipeline::submit(BatchPtr batch) {
  const std::uint64_t ticket = next_ticket_++;
  {
    std::unique_lock lock(commit_mutex_);
    progress_.wait(lock, [&] { return in_flight_bytes_ < kInFlightBytesMax || error_; });
    in_flight_bytes_ += batch->buffer.capacity;
    ++tasks_;
  }
  pool_.run([this, batch = std::move(batch), ticket] { fingerprint(batch, ticket); });
}

}  // namespace varve::ingest
