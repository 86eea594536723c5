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

namespace varve::io {

/// Remembers the highest sequence number of an encrypted repository seen on the local machine, in a
/// small file outside of the repository (docs/decisions/085). A separate thread writes the file, so
/// that a change does not wait for the machine's disk. Thread-safe, also between processes.
/// Lifetime: the destructor waits as settle() does.
class ClientMemory {
 public:
  /// `folder`: see OpenOptions::memory_folder. `id`: the id of the repository.
  ClientMemory(std::string folder, std::string id);

  /// Returns the path of the file.
  [[nodiscard]] std::string path() const { return folder_ + "/" + id_; }
  /// Returns the remembered number; nullopt without a number, without a folder for the file, or if
  /// other users may change the folder.
  /// Errors: kInvalid if the file is damaged, or not a regular file; kIo if the system does not let
  /// the file be read.
  [[nodiscard]] Result<std::optional<std::uint64_t>> read() const;
  /// Remembers a number that is on disk in the repository, unless a higher number is remembered.
  /// Returns at once. Of several waiting numbers, only the highest is written. Logs errors: a
  /// machine without a place for the file works without the memory.
  void remember(std::uint64_t sequence);
  /// Waits until all numbers given to remember() are on disk, or a failure is logged.
  void settle();
  /// Remembers a number, even if a higher number is remembered. Waits until the number is on disk.
  /// Errors: as for writing the file.
  [[nodiscard]] Result<void> accept(std::uint64_t sequence);

 private:
  /// Returns the number in the file after the write.
  [[nodiscard]] Result<std::uint64_t> write(std::uint64_t sequence, bool lower) const;
  void write_wanted();
  void log_failure(const Error& error);

  const std::string folder_;  // "" = nothing is remembered.
  const std::string id_;
  std::mutex mutex_;  // Guards the members below. Innermost.
  std::condition_variable idle_;
  std::uint64_t written_ = 0;  // The number in the file, if known; otherwise 0.
  std::uint64_t wanted_ = 0;   // The highest number to write to the file.
  bool is_writing_ = false;
  bool has_failed_ = false;  // A failure was logged.
  // Created by the first number. Declared last, so that the thread ends first.
  std::unique_ptr<base::ThreadPool> writer_;
};

/// Refuses a repository whose sequence number, returned by `present`, is lower than the number in
/// `memory`. Reads the memory first: a writer remembers a number only after the commit, so a reader
/// beside the writer sees a catalog with the remembered number.
/// Errors: kCorrupt for a lower number; as for ClientMemory::read() and `present`.
[[nodiscard]] Result<void> refuse_older(const ClientMemory& memory, const std::string& root,
                                        const std::function<Result<std::uint64_t>()>& present);

}  // namespace varve::io
