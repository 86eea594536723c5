// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "varve/result.h"

namespace varve::repo {

/// Remembers the highest sequence number of an encrypted repository that this machine has seen, in
/// a small file outside of the repository (docs/decisions/85). A thread of its own writes the file,
/// so that a change does not wait for the machine's disk. Thread-safe, also with other processes.
/// Lifetime: the destructor waits as settle() does.
class ClientMemory {
 public:
  /// `folder`: see OpenOptions::memory_folder. `id`: the id of the repository.
  ClientMemory(std::string folder, std::string id);

  /// Returns the path of the file.
  [[nodiscard]] std::string path() const { return folder_ + "/" + id_; }
  /// Returns the remembered number; nullopt if there is none, if the machine has no folder for the
  /// file, or if other users may change the folder.
  /// Errors: kInvalid if the file is damaged, or not a regular file; kIo if the system does not let
  /// the file be read.
  [[nodiscard]] Result<std::optional<std::uint64_t>> read() const;
  /// Remembers a number that is on disk in the repository, unless a higher one is remembered.
  /// Returns at once. Of several numbers that wait, writes the highest one only. Logs errors: a
  /// machine without a place for the file works without it.
  void remember(std::uint64_t sequence);
  /// Waits until what remember() was given is on disk, or its failure is logged.
  void settle();
  /// Remembers a number, also if a higher one is remembered. Waits until it is on disk.
  /// Errors: those of writing the file.
  [[nodiscard]] Result<void> accept(std::uint64_t sequence);

 private:
  /// Returns the number that the file has afterwards.
  [[nodiscard]] Result<std::uint64_t> write(std::uint64_t sequence, bool lower) const;
  void write_wanted();
  void log_failure(const Error& error);

  const std::string folder_;  // "" = nothing is remembered.
  const std::string id_;
  std::mutex mutex_;  // Guards the members below. Innermost.
  std::condition_variable idle_;
  std::uint64_t written_ = 0;  // The number that the file has, if this object knows it.
  std::uint64_t wanted_ = 0;   // The highest number that the file should have.
  bool is_writing_ = false;
  bool has_failed_ = false;  // A failure was logged.
  // Made by the first number. Declared last, so that it ends first.
  std::unique_ptr<base::ThreadPool> writer_;
};

/// Refuses a repository whose sequence number, which `present` returns, is lower than `memory` has.
/// Reads the memory first: a writer remembers a number only after its commit, so a reader beside it
/// sees a catalog with that number.
/// Errors: kCorrupt for a lower number; those of ClientMemory::read() and of `present`.
[[nodiscard]] Result<void> refuse_older(const ClientMemory& memory, const std::string& root,
                                        const std::function<Result<std::uint64_t>()>& present);

}  // namespace varve::repo
