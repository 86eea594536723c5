// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace varve::transfer {

/// Collects the problems of single files that do not end the transfer. Bounds its memory.
/// Thread-safe.
class ProblemList {
 public:
  /// Maximum number of messages. Further ones are only counted.
  static constexpr std::size_t kMessagesMax = 10000;

  /// Adds a problem of one file.
  void add(const std::string& path, const std::string& what);
  /// Adds a problem that many files share, such as a missing privilege. It yields one message with
  /// the first file's name and the number of files.
  void add_shared(const std::string& what, const std::string& path);

  /// Logs what is no problem, such as an attribute that only another kind of file system has. Logs
  /// each text once.
  void note(const std::string& what);

  /// Returns all messages, the shared ones last.
  [[nodiscard]] std::vector<std::string> take();

 private:
  struct Shared {
    std::string first_path;
    std::uint64_t files = 0;
  };
  std::mutex mutex_;  // Guards the members below. Innermost.
  std::vector<std::string> messages_;
  std::uint64_t dropped_ = 0;
  std::map<std::string, Shared> shared_;
  std::set<std::string> notes_;
};

}  // namespace varve::transfer
