// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace varve::transfer {

/// What went wrong with single files while the transfer went on. Bounded in memory.
/// Thread-safe.
class ProblemList {
 public:
  /// Over this many the rest is only counted.
  static constexpr std::size_t kMessagesMax = 10000;

  /// One file's problem.
  void add(const std::string& path, const std::string& what);
  /// A problem that many files share, such as a missing privilege: one message with the first
  /// file's name and the number of files.
  void add_shared(const std::string& what, const std::string& path);

  /// All messages, the shared ones last.
  [[nodiscard]] std::vector<std::string> take();

 private:
  struct Shared {
    std::string first_path;
    std::uint64_t files = 0;
  };
  std::mutex mutex_;  // Guards the rest; innermost.
  std::vector<std::string> messages_;
  std::uint64_t dropped_ = 0;
  std::map<std::string, Shared> shared_;
};

}  // namespace varve::transfer
