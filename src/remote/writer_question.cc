// SPDX-License-Identifier: Apache-2.0
#include "remote/writer_question.h"

#include <utility>

#include "base/thread_pool.h"

namespace varve::remote {

namespace {

using std::chrono::steady_clock;
// Time without waiting callers after a question without an answer.
constexpr std::chrono::seconds kSilence{60};

}  // namespace

WriterQuestion::WriterQuestion(Ask ask, Milliseconds patience)
    : ask_(std::move(ask)), patience_(patience) {}

void WriterQuestion::ask(const Ages& ages) {
  std::unique_lock lock(mutex_);
  const auto now = steady_clock::now();
  const bool was_asked = asked_at_ != Time();
  if (stopping_ || (was_asked && now - asked_at_ < ages.fresh)) return;
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      base::name_this_thread("varve-fence");
      run(stop);
    });
  }
  wanted_ = true;
  wake_.notify_all();
  const bool is_silent = !answered_ && now - asked_at_ < kSilence;
  if (is_silent || (was_asked && now - asked_at_ < ages.stale)) return;
  // A question in progress may have begun before another folder took over.
  const auto needed = begun_ + 1;
  static_cast<void>(wake_.wait_for(lock, patience_, [&] { return stopping_ || ended_ >= needed; }));
  if (ended_ >= needed || stopping_) return;
  answered_ = false;
  asked_at_ = steady_clock::now();
}

void WriterQuestion::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_.wait(lock, stop, [this] { return wanted_; })) {
    wanted_ = false;
    const auto number = ++begun_;
    const auto began = steady_clock::now();
    lock.unlock();
    const bool answered = ask_();
    lock.lock();
    ended_ = number;
    answered_ = answered;
    asked_at_ = answered ? began : steady_clock::now();
    wake_.notify_all();
  }
}

void WriterQuestion::stop() {
  std::jthread ended;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ended = std::move(thread_);
    wake_.notify_all();
  }
}

}  // namespace varve::remote
