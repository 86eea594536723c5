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

/// Collects the problems of single files that do not end the transfer, in bounded memory.
/// Thread-safe.
class ProblemList {
 public:
  /// Maximum number of messages. Further messages are only counted.
  static constexpr std::size_t kMessagesMax = 10000;

  /// Adds a problem of a single file.
  void add(const std::string& path, const std::string& what);
  /// Adds a problem shared by many files, for example a missing privilege. The result is a single
  /// message with the first file's name and the number of files.
  void add_shared(const std::string& what, const std::string& path);

  /// Logs a fact that is no problem, for example an attribute of another kind of file system. Logs
  /// each text once.
  void note(const std::string& what);

  /// As note(), for a fact shared by many files. take() logs the fact with the first file's name
  /// and the number of files.
  void note_shared(const std::string& what, const std::string& path);

  /// Returns all messages, the shared messages last. Logs the shared notes.
  [[nodiscard]] std::vector<std::string> take();

 private:
  struct Shared {
    std::string first_path;
    std::uint64_t files = 0;
  };
  /// Returns the message for all files.
  [[nodiscard]] static std::string text_of(const std::string& what, const Shared& shared);

  std::mutex mutex_;  // Guards the members below. Innermost.
  std::vector<std::string> messages_;
  std::uint64_t dropped_ = 0;
  std::map<std::string, Shared> shared_;
  std::map<std::string, Shared> shared_notes_;
  std::set<std::string> notes_;
};

}  // namespace varve::transfer
