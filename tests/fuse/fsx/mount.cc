// SPDX-License-Identifier: Apache-2.0
#include "mount.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <thread>

namespace varve::fsx {

namespace {

pid_t spawn(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const auto& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) fail("waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

void fail(const std::string& message) {
  std::cout << "FAILED: " << message << std::endl;
  std::_Exit(1);  // The script unmounts. A destructor could hang.
}

int run(const std::vector<std::string>& command) { return wait_for(spawn(command)); }

Mount::~Mount() {
  if (daemon_ == 0) return;
  kill();
  clean_up();
}

bool Mount::is_mounted() const {
  struct stat inner {};
  struct stat outer {};
  return ::stat(point_.c_str(), &inner) == 0 && ::stat((point_ + "/..").c_str(), &outer) == 0 &&
         inner.st_dev != outer.st_dev;
}

void Mount::start() {
  using namespace std::chrono_literals;
  {
    const std::lock_guard lock(mutex_);
    killed_ = false;
    daemon_ = spawn({varve_, "mount", "-f", repository_, point_});
  }
  for (int tries = 0; !is_mounted(); ++tries) {
    int status = 0;
    if (tries > 4000 || ::waitpid(daemon_, &status, WNOHANG) == daemon_) fail("it does not mount");
    std::this_thread::sleep_for(5ms);
  }
}

void Mount::stop() {
  if (run({varve_, "umount", point_}) != 0) fail("varve umount fails");
  if (const int status = wait_for(daemon_); status != 0) {
    fail("the daemon ended with " + std::to_string(status));
  }
  const std::lock_guard lock(mutex_);
  daemon_ = 0;
}

void Mount::kill() {
  const std::lock_guard lock(mutex_);
  if (daemon_ == 0 || killed_.exchange(true)) return;
  ::kill(daemon_, SIGKILL);
}

void Mount::clean_up() {
  if (const int status = wait_for(daemon_); status != 128 + SIGKILL) {
    fail("the daemon ended by itself with " + std::to_string(status));
  }
  {
    const std::lock_guard lock(mutex_);  // Waits until kill() no longer needs the process id.
    daemon_ = 0;
  }
  if (::umount2(point_.c_str(), MNT_DETACH) != 0) fail("the dead mount stays");
}

}  // namespace varve::fsx
