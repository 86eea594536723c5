// SPDX-License-Identifier: Apache-2.0
// The file system under test: a daemon that can be stopped, killed and started again.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace varve::fsx {

/// Ends the program with status 1.
[[noreturn]] void fail(const std::string& message);

/// Runs a program to its end. Returns its exit status.
int run(const std::vector<std::string>& command);

class Mount {
 public:
  Mount(std::string varve, std::string repository, std::string point)
      : varve_(std::move(varve)), repository_(std::move(repository)), point_(std::move(point)) {}
  Mount(const Mount&) = delete;
  Mount& operator=(const Mount&) = delete;
  ~Mount();

  void start();
  void stop();
  /// Kills the daemon. Another thread may call it, and more than once.
  void kill();
  [[nodiscard]] bool is_killed() const { return killed_; }
  /// Removes the dead mount after kill().
  void clean_up();
  [[nodiscard]] const std::string& point() const { return point_; }
  [[nodiscard]] const std::string& varve() const { return varve_; }
  [[nodiscard]] const std::string& repository() const { return repository_; }

 private:
  [[nodiscard]] bool is_mounted() const;

  const std::string varve_;
  const std::string repository_;
  const std::string point_;
  // Held for changes of daemon_ and killed_, and while kill() kills the process.
  std::mutex mutex_;
  pid_t daemon_ = 0;
  std::atomic<bool> killed_ = false;
};

}  // namespace varve::fsx
