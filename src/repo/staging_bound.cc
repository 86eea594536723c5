// SPDX-License-Identifier: Apache-2.0
#include "repo/staging_bound.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/interruption.h"
#include "base/log.h"

namespace varve::repo {

namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLooksEvery{200};  // At interruptions.
constexpr std::chrono::seconds kAsksEvery{10};         // For a replication.
constexpr std::chrono::minutes kTellsEvery{1};
constexpr std::uint64_t kStepMin = 64U << 10;
constexpr std::uint64_t kSteps = 16;  // Parts of the bound.

}  // namespace

std::uint64_t StagingBound::step() const { return std::max(parts_.bytes_max / kSteps, kStepMin); }

// Looks at the folder only once in a step.
bool StagingBound::has_room() {
  const auto staged = parts_.staged();
  if (!staged) {
    base::log(base::LogLevel::kDebug, staged.error().message());
    budget_ = static_cast<std::int64_t>(step());
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    staged_ = *staged;
  }
  if (*staged > parts_.bytes_max) return false;
  const auto room = std::min((parts_.bytes_max - *staged) / 4, step());
  budget_ = static_cast<std::int64_t>(std::max(room, kStepMin));
  return true;
}

void StagingBound::tell(const char* who, std::uint64_t staged) {
  const auto now = SteadyClock::now();
  if (told_at_ != SteadyClock::time_point{} && now - told_at_ < kTellsEvery) return;
  told_at_ = now;
  base::log(base::LogLevel::kWarning,
            fmt::format("{} bytes wait for {}, more than the bound of {} bytes: {} wait until they "
                        "are replicated",
                        staged, parts_.place, parts_.bytes_max, who));
}

StagingBound::End StagingBound::wait_for_store() {
  const auto begun = SteadyClock::now();
  auto notified = begun;
  std::unique_lock lock(mutex_);
  const auto before = replications_;
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
    // After an error that does not pass by itself, nothing else asks again.
    if (SteadyClock::now() - notified >= kAsksEvery) {
      parts_.notify();
      notified = SteadyClock::now();
    }
    lock.lock();
  }
  return End::kReplicated;
}

StagingBound::End StagingBound::wait(const char* who) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return End::kStopped;
  }
  if (parts_.is_fenced()) return End::kStopped;
  if (has_room()) return End::kRoom;
  {
    const std::lock_guard lock(mutex_);
    tell(who, staged_);
  }
  parts_.notify();
  ++waiting_;
  const auto end = wait_for_store();
  --waiting_;
  return end;
}

Result<void> StagingBound::before_write(std::uint64_t bytes) {
  const auto wanted = static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, 1U << 30));
  if (budget_.fetch_sub(wanted, std::memory_order_relaxed) >= wanted) return {};
  const auto full = [&](const std::string& why) {
    return Error(ErrorCode::kNoSpace,
                 fmt::format("more than the bound of {} bytes wait for {}, {}; nothing more is "
                             "accepted until it answers",
                             parts_.bytes_max, parts_.place, why));
  };
  if (waiting_ >= kWaitingMax) return full("and many writers wait already");
  switch (wait("writers")) {
    case End::kRoom:
      return {};
    case End::kReplicated:
      // Only what no commit names yet can be left.
      if (!has_room()) budget_ = static_cast<std::int64_t>(step());
      return {};
    case End::kStopped:
      budget_ = static_cast<std::int64_t>(step());
      return {};
    case End::kInterrupted:
      return Error(ErrorCode::kInterrupted, "interrupted while waiting for " + parts_.place);
    case End::kLate:
      break;
  }
  return full("which takes nothing");
}

void StagingBound::before_seal() {
  if (wait("seals") != End::kLate) return;
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

}  // namespace varve::repo
