// SPDX-License-Identifier: Apache-2.0
#include "fs/loop_pool.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <deque>
#include <future>
#include <set>
#include <string>

namespace varve::fs {
namespace {

/// Requests are short texts in the order of push(); "" ends the pool.
class Source {
 public:
  void push(std::string request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    changed_.notify_all();
  }
  int receive(fuse_buf* buffer) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !requests_.empty() || interrupted_; });
    if (interrupted_) {
      interrupted_ = false;
      return -EINTR;
    }
    if (buffer->mem == nullptr) buffer->mem = std::malloc(64);
    buffer->size = requests_.front().copy(static_cast<char*>(buffer->mem), 64);
    requests_.pop_front();
    return static_cast<int>(buffer->size);
  }
  void interrupt() {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> requests_;
  bool interrupted_ = false;
};

std::string text_of(const fuse_buf& request) {
  return {static_cast<const char*>(request.mem), request.size};
}

TEST(LoopPool, QuickRequestsAreAllAnsweredByOneThread) {
  Source source;
  std::set<std::thread::id> threads;
  std::string answered;
  // With this patience even a slow machine passes no lead on.
  LoopPool pool({.receive = [&](fuse_buf* buffer) { return source.receive(buffer); },
                 .process =
                     [&](const fuse_buf& request) {
                       threads.insert(std::this_thread::get_id());
                       answered += text_of(request);
                     },
                 .ended = [] { return false; }},
                {.patience = std::chrono::minutes(1), .threads_max = 4});
  for (const char* request : {"a", "b", "c", ""}) source.push(request);
  pool.run();
  EXPECT_EQ(answered, "abc");
  EXPECT_EQ(threads, std::set{std::this_thread::get_id()});
}

/// Requests that begin with 'w' wait until they are let go.
struct WaitingPool {
  explicit WaitingPool(std::size_t threads_max)
      : pool({.receive = [this](fuse_buf* buffer) { return source.receive(buffer); },
              .process = [this](const fuse_buf& request) { process(text_of(request)); },
              .ended = [this] { return ended.load(); }},
             {.patience = std::chrono::milliseconds(1), .threads_max = threads_max}),
        runner([this] { pool.run(); }) {}
  ~WaitingPool() {
    let_go.set_value();
    source.push("");
    runner.join();
  }
  void process(const std::string& request) {
    if (request.starts_with('w')) let_go_future.wait();
    const std::lock_guard lock(mutex);
    answered.insert(request);
    changed.notify_all();
  }
  bool is_answered(const std::string& request) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20),
                            [&] { return answered.contains(request); });
  }

  Source source;
  std::atomic<bool> ended{false};
  std::promise<void> let_go;
  std::shared_future<void> let_go_future = let_go.get_future().share();
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> answered;
  LoopPool pool;
  std::thread runner;
};

TEST(LoopPool, RequestsThatWaitHoldUpNoOther) {
  WaitingPool waiting(8);
  for (int i = 0; i < 7; ++i) {
    waiting.source.push("w" + std::to_string(i));
    waiting.source.push("quick" + std::to_string(i));
    EXPECT_TRUE(waiting.is_answered("quick" + std::to_string(i)));
  }
  EXPECT_EQ(waiting.answered.size(), 7U);
}

TEST(LoopPool, AtItsLimitThePoolGoesOnWhenOneIsDone) {
  WaitingPool waiting(2);
  for (const char* request : {"w1", "w2", "quick"}) waiting.source.push(request);
  waiting.let_go.set_value();
  for (const char* request : {"w1", "w2", "quick"}) EXPECT_TRUE(waiting.is_answered(request));
  waiting.let_go = {};
}

TEST(LoopPool, InterruptedReceiveEndsAPoolThatIsToEnd) {
  WaitingPool waiting(4);
  waiting.source.push("quick");
  EXPECT_TRUE(waiting.is_answered("quick"));
  waiting.ended = true;
  waiting.source.interrupt();
  waiting.runner.join();
  waiting.runner = std::thread([] {});
}

TEST(LoopPool, SignalReachesTheThreadThatReceives) {
  static std::atomic<pthread_t> interrupted;
  struct sigaction note {};
  note.sa_handler = [](int) { interrupted = ::pthread_self(); };
  ::sigaction(SIGUSR1, &note, nullptr);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::atomic<bool> ended = false;
  // As in a mount: the pool sleeps in read(2).
  LoopPool pool({.receive =
                     [&](fuse_buf*) {
                       char byte = 0;
                       return ::read(ends[0], &byte, 1) < 0 ? -errno : 0;
                     },
                 .process = [](const fuse_buf&) {},
                 .ended = [&] { return ended.load(); }},
                {});
  std::atomic<bool> done = false;
  std::thread runner([&] {
    pool.run();
    done = true;
  });
  const pthread_t leader = runner.native_handle();
  ended = true;
  while (!done) {
    pool.interrupt(SIGUSR1);
    std::this_thread::yield();
  }
  runner.join();
  // It may have found out before it slept; else the signal was for the right thread.
  EXPECT_TRUE(interrupted == pthread_t{} || interrupted == leader);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace varve::fs
