// SPDX-License-Identifier: Apache-2.0
#include "restore/read_service.h"

#include <algorithm>
#include <utility>

#include "restore/read_handle.h"
#include "restore/read_service_impl.h"
#include "restore/restore_engine.h"

namespace varve::restore {
namespace {

constexpr std::size_t kMemoryBytesMin = SessionManager::kSessionBytesMin;
constexpr std::size_t kPrefetchThreads = 2;
constexpr std::size_t kReadThreads = 4;
constexpr std::size_t kAheadThreads = 3;
constexpr std::size_t kSpareFrames = 4;
// A session has up to four areas, and readers hold up to five more that the session has dropped.
// Readers return several areas at a time, and the kernel has to clear fresh memory.
constexpr std::size_t kSpareAreas = 6;
// Memory shared by all sessions: the frames of random access and the spare buffers.
constexpr std::size_t kSharedBytes =
    (FrameCache::kFramesMax + kSpareFrames) * format::kFrameRawBytesMax + BufferPool::kSlotsBytes;

std::size_t memory_bytes(const ReadOptions& options) {
  return std::max<std::size_t>(options.cache_bytes, kMemoryBytesMin);
}

}  // namespace

ReadServiceImpl::ReadServiceImpl(const ReadOptions& options, base::Metrics& registry)
    : metrics_(registry),
      meter_(metrics_.memory_bytes),
      slice_reader_(metrics_),
      areas_(kSpareAreas, &meter_),
      slices_(0, &meter_, layout::room_for(kSliceBytesMax)),
      frames_(kSpareFrames, &meter_),
      random_(&slice_reader_, &slices_, &frames_, metrics_),
      ahead_readers_(kAheadThreads, "varve-ahead"),
      readers_(kReadThreads, "varve-read"),
      prefetchers_(kPrefetchThreads, "varve-prefetch"),
      sessions_(session_context(options.engine), memory_bytes(options) - kSharedBytes,
                memory_bytes(options) / SessionManager::kSessionBytesMin) {}

SessionContext ReadServiceImpl::session_context(const std::string& engine) {
  SessionContext context;
  context.engine.reader = &slice_reader_;
  context.engine.areas = &areas_;
  context.engine.slices = &slices_;
  context.engine.meter = &meter_;
  context.engine.metrics = &metrics_;
  context.engine.workers = &readers_;
  context.engine.ahead_readers = &ahead_readers_;
  context.engine_name = engine;
  context.prefetchers = &prefetchers_;
  return context;
}

Result<std::unique_ptr<ReadHandle>> ReadServiceImpl::open(ReadableFile file) {
  if (file.source == nullptr || !file.content.recipe) {
    return Error(ErrorCode::kInvalid, "a file without content cannot be read");
  }
  return std::unique_ptr<ReadHandle>(new FileHandle(
      {&sessions_, &random_, &prefetchers_, &metrics_.delivered_bytes}, std::move(file)));
}

// Without a session, the first files would be read sequentially, each with a round trip.
void ReadServiceImpl::will_read_after(const ReadableFile& file) {
  if (!file.source->answers_later()) return;
  const std::lock_guard lock(mutex_);
  if (const auto known = announced_.lock()) {
    if (known->version_key() == file.version_key && known->is_unread()) return;
  }
  if (!sessions_.has_room(nullptr)) return;
  announced_ = sessions_.start(file, std::make_unique<FileStream>(std::nullopt, file.future()), 0,
                               nullptr, true);
}

Result<std::unique_ptr<ReadService>> make_read_service(const ReadOptions& options,
                                                       base::Metrics& registry) {
  VARVE_TRY(check_engine(options.engine));
  return std::unique_ptr<ReadService>(new ReadServiceImpl(options, registry));
}

}  // namespace varve::restore
