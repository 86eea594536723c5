// SPDX-License-Identifier: Apache-2.0
#include "restore/session_manager.h"

#include <algorithm>
#include <utility>

namespace varve::restore {
namespace {

// Number of reads by other sessions after which a session counts as idle. Without the limit, a
// single reader too many would make all sessions restart again and again.
constexpr std::uint64_t kIdleTicks = 32;
// Ordinals also count directories and symlinks, so neighbours may be a few apart.
constexpr std::uint64_t kNeighbourDistanceMax = 16;
constexpr std::size_t kTrailsMax = 16;
constexpr unsigned kStreakWantedMin = 2;
constexpr unsigned kStreakWantedMax = 16;

}  // namespace

SessionManager::SessionManager(SessionContext context, std::size_t memory_bytes,
                               std::size_t sessions_max)
    : context_(std::move(context)), memory_bytes_(memory_bytes), sessions_max_(sessions_max) {}

SessionManager::~SessionManager() {
  for (const Member& member : members_) static_cast<void>(member.session->drop());
}

std::optional<AreaBytes> SessionManager::take(const void* reader, const ReadableFile& file,
                                              std::uint64_t data_offset, std::size_t bytes,
                                              TakeFor purpose) {
  Removed removed;
  const std::lock_guard lock(mutex_);
  // A reader that cannot borrow requests a copy next; the copy counts.
  if (purpose == TakeFor::kCopy) ++ticks_;
  for (Member& member : members_) {
    if (member.session->version_key() != file.version_key) continue;
    auto taken = member.session->take(file.content.ordinal, data_offset, bytes, purpose);
    if (!taken) continue;
    if (purpose != TakeFor::kCopy) ++ticks_;
    member.used = ticks_;
    member.reader = reader;
    if (member.session->is_over()) remove_finished(removed);
    return taken;
  }
  return std::nullopt;
}

std::shared_ptr<Session> SessionManager::find_expecting(const ReadableFile& file,
                                                        std::uint64_t data_offset) {
  const std::lock_guard lock(mutex_);
  for (Member& member : members_) {
    if (member.session->version_key() != file.version_key) continue;
    if (!member.session->expects(file.content.ordinal, data_offset)) continue;
    member.used = ticks_;
    return member.session;
  }
  return nullptr;
}

/// Returns the index of the session to end for a new session, or members_.size() if there is none.
std::size_t SessionManager::free_candidate(const void* reader) const {
  std::size_t best = members_.size();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    const bool is_left = reader != nullptr && member.reader == reader;
    if ((!is_left && ticks_ - member.used < kIdleTicks) || member.session->is_busy()) continue;
    if (is_left) return i;
    if (best == members_.size() || member.used < members_[best].used) best = i;
  }
  return best;
}

void SessionManager::remove(std::size_t index, Removed& removed) {
  const auto session = std::move(members_[index].session);
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(index));
  // After a wasted session, the next session of the version needs a longer trail.
  unsigned& wanted = patience(session->version_key()).streak_wanted;
  wanted = session->was_wasted() ? std::min(2 * wanted, kStreakWantedMax) : kStreakWantedMin;
  removed.push_back({session, session->drop()});
}

void SessionManager::remove_finished(Removed& removed) {
  for (std::size_t i = members_.size(); i-- > 0;) {
    if (members_[i].session->is_over()) remove(i, removed);
  }
  share_memory();
}

void SessionManager::share_memory() {
  const std::size_t sessions = members_.size() + starting_;
  for (const Member& member : members_) member.session->set_memory(memory_bytes_ / sessions);
}

bool SessionManager::has_room(const void* reader) {
  Removed removed;
  const std::lock_guard lock(mutex_);
  remove_finished(removed);
  return members_.size() + starting_ < sessions_max_ || free_candidate(reader) < members_.size();
}

/// Reserves a place for a session. May remove an idle session, or a session left by its reader.
bool SessionManager::make_room(const void* reader, Removed& removed) {
  remove_finished(removed);
  const std::size_t candidate = free_candidate(reader);
  const bool has_left =
      reader != nullptr && candidate < members_.size() && members_[candidate].reader == reader;
  if (has_left || members_.size() + starting_ >= sessions_max_) {
    if (candidate == members_.size()) return false;
    remove(candidate, removed);
  }
  ++starting_;
  share_memory();
  return true;
}

std::shared_ptr<Session> SessionManager::start(const ReadableFile& file,
                                               std::unique_ptr<FileStream> stream,
                                               std::uint64_t position, const void* reader,
                                               bool reads_all) {
  Removed removed;
  std::unique_lock lock(mutex_);
  if (!make_room(reader, removed)) return nullptr;
  // The session sizes its tables by the share. The tables keep their size when more sessions share
  // the memory later, and so must fit the smaller share, too.
  const std::size_t share =
      std::min(memory_bytes_ / (members_.size() + starting_), 4 * (memory_bytes_ / sessions_max_));
  lock.unlock();
  removed.clear();
  // The stream looks up the first files, and a lookup is I/O.
  auto session = Session::create(context_, file.version_key, file.source, std::move(stream),
                                 position, share, reads_all);
  lock.lock();
  --starting_;
  if (session) {
    members_.push_back({*session, ticks_, reader});
    context_.engine.metrics->sessions.add();
  }
  share_memory();
  if (!session) return nullptr;
  (*session)->start();
  return std::move(*session);
}

/// Continues the trail leading to the file, or begins a new trail. Returns the length of the trail.
unsigned SessionManager::follow(std::uint64_t version_key, std::uint64_t ordinal) {
  const auto it = std::find_if(trails_.begin(), trails_.end(), [&](const Trail& one) {
    return one.version_key == version_key && ordinal > one.ordinal &&
           ordinal - one.ordinal <= kNeighbourDistanceMax;
  });
  if (it != trails_.end()) {
    std::rotate(it, it + 1, trails_.end());
  } else {
    if (trails_.size() == kTrailsMax) trails_.erase(trails_.begin());
    trails_.push_back({version_key, 0, 0});
  }
  Trail& trail = trails_.back();
  trail.ordinal = ordinal;
  return ++trail.streak;
}

SessionManager::Patience& SessionManager::patience(std::uint64_t version_key) {
  const auto it = std::find_if(patience_.begin(), patience_.end(),
                               [&](const Patience& one) { return one.version_key == version_key; });
  if (it != patience_.end()) return *it;
  if (patience_.size() == kTrailsMax) patience_.erase(patience_.begin());
  patience_.push_back({version_key, kStreakWantedMin});
  return patience_.back();
}

void SessionManager::on_whole_file(const ReadableFile& file) {
  {
    const std::lock_guard lock(mutex_);
    const unsigned streak = follow(file.version_key, file.content.ordinal);
    if (streak < patience(file.version_key).streak_wanted) return;
  }
  if (!file.future || !has_room(nullptr)) return;
  auto future = file.future();
  if (!future) return;
  start(file, std::make_unique<FileStream>(std::nullopt, std::move(future)), 0, nullptr);
}

}  // namespace varve::restore
