// SPDX-License-Identifier: Apache-2.0
#include "restore/session.h"

#include <algorithm>
#include <utility>

namespace varve::restore {
namespace {

constexpr std::size_t kAreaBytesMax = 4U << 20;
constexpr std::size_t kAreaBytesMin = 512U << 10;
// The first area is small, because the reader waits for the area and may still leave.
constexpr std::size_t kFirstAreaBytes = 1U << 20;
// Number of areas kept: the previous, the current and the next.
constexpr std::size_t kAreasKept = 3;
// The kept areas, plus an area that a reader has not finished copying.
constexpr std::size_t kAreasCounted = kAreasKept + 1;
// Maximum of lent areas that the session has dropped. Lent areas count as the reader's memory,
// because they replace the reader's buffers.
constexpr std::ptrdiff_t kAreasLentMax = 5;

// Largest gap to read; larger gaps are skipped.
constexpr std::uint64_t kSkipBytesMin = 1U << 20;
// After a gapless read of kSteadyBytes, a reader is likely to continue.
constexpr std::uint64_t kSteadyBytes = 8U << 20;
// Requests grow with the bytes read without a gap, from kLongRequestsAfterBytes on.
constexpr std::uint64_t kLongRequestsAfterBytes = 4U << 20;
// A session ends after assembling kWasteBytes if hardly any of them were read.
constexpr std::uint64_t kWasteBytes = 32U << 20;

std::size_t area_bytes_for(std::size_t memory_bytes) {
  return std::clamp(memory_bytes / 8, kAreaBytesMin, kAreaBytesMax);
}

}  // namespace

Session::Session(const SessionContext& context, std::uint64_t version_key,
                 std::unique_ptr<FileStream> stream, std::uint64_t position,
                 std::size_t memory_bytes)
    : context_(context),
      version_key_(version_key),
      stream_(std::move(stream)),
      next_position_(position),
      frontier_(position),
      memory_bytes_(memory_bytes),
      area_bytes_(std::min(kFirstAreaBytes, area_bytes_for(memory_bytes))),
      area_bytes_max_(area_bytes_for(memory_bytes)) {}

Result<std::shared_ptr<Session>> Session::create(const SessionContext& context,
                                                 std::uint64_t version_key,
                                                 layout::ChunkSource* source,
                                                 std::unique_ptr<FileStream> stream,
                                                 std::uint64_t position, std::size_t memory_bytes,
                                                 bool reads_all) {
  std::shared_ptr<Session> session(
      new Session(context, version_key, std::move(stream), position, memory_bytes));
  EngineContext engine = context.engine;
  engine.source = source;
  engine.stream = session->stream_.get();
  engine.reads_all = reads_all;
  VARVE_TRY_ASSIGN(session->engine_,
                   make_engine(context.engine_name, engine, session->engine_memory()));
  session->stream_->look_ahead(position, kFilesAhead + 1, kBytesAhead);
  return session;
}

EngineMemory Session::engine_memory() const {
  std::size_t held = 0;
  for (const auto& area : areas_) held += area->capacity();
  return {memory_bytes_, std::max(held, kAreasCounted * area_bytes_max_)};
}

/// Returns the limit for requests: half of the bytes read without a gap, if there are many. So if a
/// reader leaves out files, little was read in vain.
std::size_t Session::request_bytes() const {
  const std::uint64_t steady = frontier_.steady_bytes();
  if (steady < kLongRequestsAfterBytes) return kSliceBytesMax;
  return static_cast<std::size_t>(std::min<std::uint64_t>(steady / 2, kJoinedBytesMax));
}

std::shared_ptr<const AssemblyArea> Session::find_area(std::uint64_t position) const {
  for (const auto& area : areas_) {
    if (position >= area->position() && position < area->end()) return area;
  }
  return nullptr;
}

std::optional<AreaBytes> Session::take(std::uint64_t ordinal, std::uint64_t data_offset,
                                       std::size_t bytes, TakeFor purpose) {
  const auto file = stream_->find(ordinal);
  if (!file || data_offset >= file->bytes) return std::nullopt;
  const std::uint64_t position = file->position + data_offset;
  const std::lock_guard lock(mutex_);
  auto area = find_area(position);
  if (!area || (purpose != TakeFor::kCopy && !may_lend())) return std::nullopt;
  const std::size_t count = std::min(area->good_bytes(position), bytes);
  if (count == 0 || (purpose == TakeFor::kLendingWhole && count < bytes)) return std::nullopt;
  bytes_taken_ += count;
  advance(position, count, *file);
  return AreaBytes{std::move(area), position, count};
}

void Session::advance(std::uint64_t position, std::size_t bytes, const StreamFile& file) {
  frontier_.advance(position, bytes, file);
  while (areas_.size() > 1 && areas_.front()->end() + kReorderBytes <= frontier_.position()) {
    leave_first_area();
  }
  prefetch_if_due();
}

void Session::leave_first_area() {
  if (areas_.front().use_count() > 1) left_.push_back(areas_.front());
  areas_.pop_front();
  std::erase_if(left_, [](const auto& area) { return area.expired(); });
}

bool Session::may_lend() const {
  const auto is_held = [](const auto& area) { return !area.expired(); };
  return std::ranges::count_if(left_, is_held) < kAreasLentMax;
}

/// Returns whether to assemble the next area. One area in advance is due for every reader. A second
/// area is due for a reader without gaps. Otherwise the disk would be idle from the end of an
/// assembly until the reader enters the new area.
bool Session::is_due() const {
  if (assembling_ || ended_ || dropped_) return false;
  if (areas_.empty() || areas_.back()->position() < frontier_.position()) return true;
  return frontier_.steady_bytes() >= kSteadyBytes && areas_.size() < kAreasKept;
}

void Session::prefetch_if_due() {
  if (prefetch_queued_ || !is_due()) return;
  prefetch_queued_ = true;
  context_.prefetchers->run([self = shared_from_this()] { self->prefetch(); });
}

void Session::start() {
  const std::lock_guard lock(mutex_);
  prefetch_if_due();
}

void Session::prefetch() {
  Lock lock(mutex_);
  prefetch_queued_ = false;
  while (is_due()) assemble(lock);  // A reader may have assembled the area already.
}

/// Assembles one area. Releases the lock during the assembly.
void Session::assemble(Lock& lock) {
  assembling_ = true;
  const std::uint64_t skip_to = std::exchange(skip_to_, 0);
  const std::size_t bytes = area_bytes_;
  const std::size_t request = request_bytes();
  lock.unlock();
  auto result = [&]() -> Result<std::shared_ptr<const AssemblyArea>> {
    if (skip_to > 0) VARVE_TRY(engine_->skip_to(skip_to));
    engine_->set_request_bytes(request);
    return engine_->assemble(bytes);
  }();
  const bool has_area = result && *result;
  if (has_area) stream_->look_ahead((*result)->end(), kFilesAhead + 1, kBytesAhead);
  lock.lock();
  assembling_ = false;
  next_position_ = std::max(next_position_, engine_->position());
  if (!has_area) {
    ended_ = true;
  } else if (!dropped_) {
    bytes_assembled_ += (*result)->end() - (*result)->position();
    areas_.push_back(std::move(*result));
    if (areas_.size() > kAreasKept) leave_first_area();
    stream_->forget_before(areas_.front()->position());
  }
  area_bytes_ = std::min(2 * area_bytes_, area_bytes_max_);
  assembled_.notify_all();
  if (!dropped_) {
    engine_->set_memory(engine_memory());  // The session's share may have shrunk in the meantime.
    return;
  }
  auto engine = std::move(engine_);
  lock.unlock();
  engine.reset();
  lock.lock();
}

bool Session::expects(std::uint64_t ordinal, std::uint64_t data_offset) {
  const auto file = stream_->find(ordinal);
  if (!file || data_offset >= file->bytes) return false;
  const std::uint64_t position = file->position + data_offset;
  const std::lock_guard lock(mutex_);
  if (dropped_) return false;
  if (const auto area = find_area(position)) return area->good_bytes(position) > 0;
  if (position < next_position_ || ended_) return false;
  if (position <= frontier_.position() + area_bytes_max_ + kReorderBytes) return true;
  if (!frontier_.may_go_on_in(*file, data_offset)) return false;
  if (file->position > next_position_ + kSkipBytesMin) {
    skip_to_ = std::max(skip_to_, file->position);
  }
  return true;
}

bool Session::await(std::uint64_t ordinal, std::uint64_t data_offset) {
  const auto file = stream_->find(ordinal);
  if (!file) return false;
  const std::uint64_t position = file->position + data_offset;
  Lock lock(mutex_);
  while (true) {
    if (dropped_) return false;
    if (const auto area = find_area(position)) return area->good_bytes(position) > 0;
    if (position < next_position_ || ended_) return false;
    if (assembling_) {
      assembled_.wait(lock);
    } else {
      assemble(lock);
    }
  }
}

void Session::set_memory(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  memory_bytes_ = bytes;
  area_bytes_max_ = area_bytes_for(bytes);
  area_bytes_ = std::min(area_bytes_, area_bytes_max_);
  // During an assembly, assemble() sets the memory at the end.
  if (!assembling_ && engine_) engine_->set_memory(engine_memory());
}

std::unique_ptr<RestoreEngine> Session::drop() {
  const std::lock_guard lock(mutex_);
  dropped_ = true;
  areas_.clear();
  assembled_.notify_all();
  if (assembling_) return nullptr;
  return std::move(engine_);
}

bool Session::is_unread() const {
  const std::lock_guard lock(mutex_);
  return !dropped_ && bytes_taken_ == 0;
}

bool Session::is_over() const {
  const std::lock_guard lock(mutex_);
  if (ended_) return areas_.empty() || frontier_.position() >= areas_.back()->end();
  return bytes_assembled_ >= kWasteBytes && bytes_taken_ < bytes_assembled_ / 8;
}

bool Session::is_busy() const {
  const std::lock_guard lock(mutex_);
  return assembling_;
}

bool Session::was_wasted() const {
  const std::lock_guard lock(mutex_);
  return bytes_taken_ < bytes_assembled_ / 4;
}

}  // namespace varve::restore
