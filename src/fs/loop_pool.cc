// SPDX-License-Identifier: Apache-2.0
#include "fs/loop_pool.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/thread_pool.h"
#include "base/unique_fd.h"
#include "fs/check_schedule.h"

namespace varve::fs {
namespace {

/// Number of followers that keep a buffer for leading again.
constexpr std::size_t kWarmFollowers = 2;

bool is_busy(std::uint64_t turn) { return (turn & 1) != 0; }

}  // namespace

LoopPool::LoopPool(Calls calls, const Limits& limits) : calls_(std::move(calls)), limits_(limits) {}

LoopPool::~LoopPool() = default;

void LoopPool::run() {
  watchdog_ = std::thread([this] {
    base::name_this_thread("varve-watch");
    watch();
  });
  fuse_buf buffer{};
  work(buffer);
  // The watchdog must end first, because the watchdog starts threads.
  watchdog_.join();
  for (std::thread& thread : threads_) thread.join();
}

void LoopPool::work(fuse_buf& buffer) {
  while (take_lead(buffer)) {
    if (lead(buffer)) continue;
    end();
    break;
  }
  std::free(buffer.mem);
}

/// Waits until there is no leader, then leads. Returns false when the pool ends.
bool LoopPool::take_lead(fuse_buf& buffer) {
  std::unique_lock lock(mutex_);
  if (followers_ >= kWarmFollowers) {
    std::free(buffer.mem);
    buffer.mem = nullptr;
  }
  ++followers_;
  lead_is_free_.wait(lock, [this] { return nobody_leads_ || ended_; });
  --followers_;
  if (ended_) return false;
  nobody_leads_ = false;
  leader_ = ::pthread_self();
  leader_tid_ = ::gettid();
  return true;
}

/// Answers requests. Returns true when the lead was taken away, false when the pool must end.
bool LoopPool::lead(fuse_buf& buffer) {
  while (!calls_.ended()) {
    const int got = calls_.receive(&buffer);
    if (got == -EINTR) continue;
    if (got <= 0) return false;
    std::uint64_t turn = turn_.fetch_add(1) + 1;
    if (watchdog_sleeps_.load() && watchdog_sleeps_.exchange(false)) {
      // The watchdog holds the lock from the last check to the sleep, so the wake-up cannot be
      // lost.
      const std::lock_guard lock(mutex_);
      watchdog_wakes_.notify_one();
    }
    calls_.process(buffer);
    if (!turn_.compare_exchange_strong(turn, turn + 1)) return true;
  }
  return false;
}

void LoopPool::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  lead_is_free_.notify_all();
  watchdog_wakes_.notify_one();
}

void LoopPool::interrupt(int signal) {
  const std::lock_guard lock(mutex_);
  // No signal to a thread that answers a request: the signal could interrupt a system call of the
  // request.
  if (ended_ || nobody_leads_ || is_busy(turn_.load())) return;
  ::pthread_kill(leader_, signal);
}

void LoopPool::watch() {
  using Next = CheckSchedule::Next;
  std::unique_lock lock(mutex_);
  CheckSchedule schedule;
  while (!ended_) {
    const std::uint64_t turn = turn_.load();
    const Next next = schedule.note(turn);
    if (schedule.request_is_very_late() || (schedule.request_is_late() && leader_waits())) {
      pass_lead(turn);
    }
    if (next == Next::kWhenWoken) {
      // Either the leader sees the flag, or the watchdog sees the leader's count.
      watchdog_sleeps_ = true;
      if (turn_.load() == turn) {
        watchdog_wakes_.wait(lock, [this] { return ended_ || !watchdog_sleeps_; });
      }
      watchdog_sleeps_ = false;
      continue;
    }
    const unsigned patience = next == Next::kSeldom ? CheckSchedule::kCalmPatience : 1;
    watchdog_wakes_.wait_for(lock, limits_.patience * patience, [this] { return ended_; });
  }
}

/// Returns whether the leader's thread sleeps (proc(5), /proc/pid/task/tid/stat). mutex_ is held.
bool LoopPool::leader_waits() const {
  const std::string path = fmt::format("/proc/self/task/{}/stat", leader_tid_);
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  const ssize_t got = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
  if (got <= 0) return true;  // Unknown: an extra leader does less harm.
  const std::string_view line(text.data(), static_cast<std::size_t>(got));
  const auto name_end = line.rfind(')');
  return name_end == std::string_view::npos || !line.substr(name_end).starts_with(") R");
}

/// Makes another thread the leader, unless the request of `turn` is done. mutex_ is held.
void LoopPool::pass_lead(std::uint64_t turn) {
  const bool may_grow = threads_.size() + 1 < limits_.threads_max;
  if (followers_ == 0 && !may_grow) return;
  if (!turn_.compare_exchange_strong(turn, turn + 1)) return;  // The request is done.
  nobody_leads_ = true;
  if (followers_ > 0) {
    lead_is_free_.notify_one();
  } else {
    add_thread();
  }
}

/// Starts a thread as leader. If the start fails, the late thread leads again after its request.
/// mutex_ is held.
void LoopPool::add_thread() {
  try {
    threads_.emplace_back([this] {
      base::name_this_thread("varve-loop");
      fuse_buf buffer{};
      work(buffer);
    });
  } catch (const std::system_error& error) {
    base::log(base::LogLevel::kWarning, fmt::format("cannot start a thread: {}", error.what()));
  }
}

}  // namespace varve::fs
