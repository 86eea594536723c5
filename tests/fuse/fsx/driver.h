// SPDX-License-Identifier: Apache-2.0
// Executes random operations on the files of an open version, and applies each to a model.
#pragma once

#include <fcntl.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "model.h"
#include "mount.h"

namespace varve::fsx {

struct Handle {
  int fd = -1;
  FileId file = 0;
  bool readable = false;
  bool writable = false;
  bool append = false;
};

/// The permanent content of a sealed version.
struct SealedModel {
  std::string name;
  std::map<std::string, std::shared_ptr<const Bytes>> files;
};

class Driver {
 public:
  Driver(Mount& mount, std::uint64_t seed) : mount_(mount), random_(seed), seed_(seed) {}

  /// Runs the test: one version after another, with the operations spread over them.
  void run(std::uint64_t operations);

 private:
  // driver.cc: versions, restarts and the choice of operations.
  void begin_version();
  void clone_from_last(const std::string& to);
  void end_version();
  void operate();
  void restart_clean();
  void restart_killed(bool during_an_operation);
  void take_over_after_crash();
  void close_all();
  void verify_sealed(const SealedModel& sealed);

  // operations.cc: each function executes one operation. Returns false if the daemon is dead.
  bool op_open();
  bool op_close();
  bool op_write();
  bool op_read();
  bool op_read_all();
  bool op_truncate();
  bool op_allocate();
  bool op_map();
  bool op_copy_range();
  bool op_copy_from_sealed();
  bool op_seek();
  bool op_fsync();
  bool op_fsync_directory();
  bool op_rename();
  bool op_link();
  bool op_unlink();
  bool op_status();

  // Helpers for both.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(random_);
  }
  [[nodiscard]] bool chance(double share) {
    return std::uniform_real_distribution<double>(0, 1)(random_) < share;
  }
  [[nodiscard]] std::string random_name();
  [[nodiscard]] std::string existing_name();
  [[nodiscard]] Bytes random_data(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t random_offset(std::uint64_t size);
  [[nodiscard]] std::uint64_t random_bytes();
  [[nodiscard]] Handle* pick(bool readable, bool writable);
  [[nodiscard]] FileModel& content(const Handle& handle) { return tree_.file(handle.file).content; }
  [[nodiscard]] std::string path(const std::string& name) const { return top_ + "/" + name; }
  bool open_file(const std::string& name, int flags);
  void close_handle(std::size_t index);
  bool copy(int from, std::uint64_t from_offset, Handle& to, std::uint64_t offset,
            std::uint64_t bytes, const Bytes& data);
  bool compare(int fd, FileId file, std::uint64_t offset, std::uint64_t bytes);
  /// Handles a failed call: returns true if the daemon was killed; otherwise fails the test.
  bool excused(const std::string& what, FileId file = 0);
  void note(const std::string& what);
  [[noreturn]] void stop(const std::string& message, FileId file = 0);
  [[nodiscard]] Bytes read_file(const std::string& path_of_file);

  Mount& mount_;
  std::mt19937_64 random_;
  const std::uint64_t seed_;
  TreeModel tree_;
  std::vector<Handle> handles_;
  std::vector<SealedModel> sealed_;
  std::string top_;  // The open version's directory.
  int version_ = 0;
  std::uint64_t operation_ = 0;
  std::uint64_t restarts_ = 0;
  std::uint64_t kills_ = 0;
  // Operations that were refused; not tried again.
  std::map<std::string, std::uint64_t> unsupported_;
  std::map<std::string, std::uint64_t> done_;
  std::deque<std::string> log_;
  std::mutex mapping_;  // Held while memory is mapped: a kill then would end this program, too.
};

/// The folders that have files.
inline constexpr const char* kFolders[] = {"", "d1/", "d2/"};

}  // namespace varve::fsx
