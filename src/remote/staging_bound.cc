// SPDX-License-Identifier: Apache-2.0
#include "remote/staging_bound.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "base/interruption.h"
#include "base/log.h"

namespace varve::remote {

namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLooksEvery{200};  // At interruptions.
constexpr std::chrono::seconds kAsksEvery{10};         // For a replication.
constexpr std::chrono::minutes kTellsEvery{1};
constexpr std::uint64_t kStepMin = 64U << 10;
constexpr std::uint64_t kSteps = 16;  // Parts of the bound.
constexpr std::uint64_t kStepOnFullDisk = 1U << 20;
constexpr std::chrono::seconds kRoomWithin{30};

}  // namespace

std::uint64_t StagingBound::step() {
  const std::lock_guard lock(mutex_);
  const auto step = std::max(parts_.bytes_max / kSteps, kStepMin);
  return is_disk_full_ ? std::min(step, kStepOnFullDisk) : step;
}

// Looks at the folder only once in a step.
bool StagingBound::has_room(std::uint64_t wanted) {
  const auto staged = parts_.staged();
  if (!staged) {
    base::log(base::LogLevel::kDebug, staged.error().message());
    budget_ = static_cast<std::int64_t>(step());
    return true;
  }
  const auto disk = parts_.disk_room ? parts_.disk_room(wanted) : std::optional(parts_.bytes_max);
  {
    const std::lock_guard lock(mutex_);
    staged_ = *staged;
    is_disk_full_ = disk && (*disk == 0 || *disk < wanted);
    if (is_disk_full_) return false;
  }
  if (*staged > parts_.bytes_max) return false;
  const auto room = std::min({(parts_.bytes_max - *staged) / 4, step(), disk.value_or(0) / 4});
  budget_ = static_cast<std::int64_t>(std::max(room, kStepMin));
  return true;
}

std::string StagingBound::reason() {
  const std::lock_guard lock(mutex_);
  if (is_disk_full_) {
    return fmt::format("the disk is nearly full, and {} must answer before data is removed from it",
                       parts_.place);
  }
  return fmt::format("{} bytes wait for {}, more than the bound of {} bytes", staged_, parts_.place,
                     parts_.bytes_max);
}

void StagingBound::tell(const char* who) {
  {
    const std::lock_guard lock(mutex_);
    const auto now = SteadyClock::now();
    if (told_at_ != SteadyClock::time_point{} && now - told_at_ < kTellsEvery) return;
    told_at_ = now;
  }
  base::log(base::LogLevel::kWarning, fmt::format("{}: {} wait for that", reason(), who));
}

StagingBound::End StagingBound::wait_for_store(std::uint64_t before) {
  const auto begun = SteadyClock::now();
  auto notified = begun;
  std::unique_lock lock(mutex_);
  while (replications_ == before) {
    if (stopping_) return End::kStopped;
    if (gave_up_) return End::kLate;
    if (SteadyClock::now() - begun >= parts_.patience) {
      gave_up_ = true;
      changed_.notify_all();
      return End::kLate;
    }
    changed_.wait_for(lock, kLooksEvery);
    lock.unlock();
    if (base::InterruptionScope::is_interrupted()) return End::kInterrupted;
    if (parts_.is_fenced()) return End::kStopped;
    // After a lasting error, nothing else requests a replication again.
    if (SteadyClock::now() - notified >= kAsksEvery) {
      parts_.notify();
      notified = SteadyClock::now();
    }
    lock.lock();
  }
  return End::kReplicated;
}

StagingBound::End StagingBound::wait(const char* who, std::uint64_t wanted) {
  // Before the look at the room: a replication that ends after the look ends the wait.
  std::uint64_t before = 0;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return End::kStopped;
    before = replications_;
  }
  if (parts_.is_fenced()) return End::kStopped;
  if (has_room(wanted)) return End::kRoom;
  tell(who);
  parts_.notify();
  ++waiting_;
  const auto end = wait_for_store(before);
  --waiting_;
  return end;
}

Result<void> StagingBound::before_write(std::uint64_t bytes) {
  const auto wanted = static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, 1U << 30));
  if (budget_.fetch_sub(wanted, std::memory_order_relaxed) >= wanted) return {};
  const auto full = [&](const std::string& why) {
    return Error(
        ErrorCode::kNoSpace,
        fmt::format("{}; {}, and nothing more is accepted until it answers", reason(), why));
  };
  if (waiting_ >= kWaitingMax) return full("many writers wait already");
  const auto begun = SteadyClock::now();
  while (true) {
    const auto end = wait("writers", bytes);
    if (end == End::kLate) return full("it takes nothing");
    if (end == End::kInterrupted) {
      return Error(ErrorCode::kInterrupted, "interrupted while waiting for " + parts_.place);
    }
    if (end == End::kRoom || (end == End::kReplicated && has_room(bytes))) return {};
    // Checkpoints commit the data within seconds, and the next replication makes room.
    const bool is_worthwhile = SteadyClock::now() - begun < kRoomWithin;
    if (end == End::kStopped || !is_disk_full() || !is_worthwhile) break;
    std::this_thread::sleep_for(kLooksEvery);
  }
  // Only uncommitted data can be left.
  budget_ = static_cast<std::int64_t>(step());
  return {};
}

void StagingBound::before_seal() {
  if (wait("seals", 0) != End::kLate) return;
  base::log(base::LogLevel::kWarning, parts_.place + " takes nothing: the seal goes on");
}

void StagingBound::replicated() {
  {
    const std::lock_guard lock(mutex_);
    ++replications_;
    gave_up_ = false;
  }
  changed_.notify_all();
}

void StagingBound::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

}  // namespace varve::remote
