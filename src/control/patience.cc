// SPDX-License-Identifier: Apache-2.0
#include "control/patience.h"

#include <fmt/core.h>

#include <condition_variable>
#include <fstream>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace varve::control {
namespace {

struct Ending {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
};

}  // namespace

bool is_stopped(pid_t process) {
  if (process <= 0) return false;
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  // proc(5): the state follows the name in parentheses. The name may contain any byte.
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= line.size()) return false;
  const char state = line[name_end + 2];
  return state == 'T' || state == 't';
}

std::string advice_for_silence(pid_t process) {
  if (process <= 0) return "the daemon does not answer; see its log";
  if (is_stopped(process)) {
    return fmt::format(
        "the daemon (process {}) is stopped and does not answer: continue it with `kill -CONT "
        "{}`, then try again",
        process, process);
  }
  return fmt::format(
      "the daemon (process {}) does not answer; see its log and the kernel's. If its disk hangs, "
      "wait for it. `kill {}` ends the daemon; data that fsync or seal has made durable is kept",
      process, process);
}

bool ends_within(std::chrono::milliseconds patience, std::function<void()> task) {
  const auto ending = std::make_shared<Ending>();
  std::thread thread;
  try {
    thread = std::thread([ending, task = std::move(task)] {
      task();
      const std::lock_guard lock(ending->mutex);
      ending->ended = true;
      ending->changed.notify_all();
    });
  } catch (const std::system_error&) {
    return false;
  }
  bool ended = false;
  {
    std::unique_lock lock(ending->mutex);
    ended = ending->changed.wait_for(lock, patience, [&] { return ending->ended; });
  }
  // `varve mount` forks next, and a process should fork with one thread.
  if (ended) {
    thread.join();
  } else {
    thread.detach();
  }
  return ended;
}

}  // namespace varve::control
