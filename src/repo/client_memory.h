// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "varve/result.h"

namespace varve::repo {

/// Remembers the highest sequence number of an encrypted repository that this machine has seen, in
/// a small file outside of the repository (docs/decisions/85). Thread-safe, also with other
/// processes.
class ClientMemory {
 public:
  /// `folder`: see OpenOptions::memory_folder. `id`: the id of the repository.
  ClientMemory(std::string folder, std::string id);

  /// Returns the remembered number; nullopt if there is none, or the file cannot be read.
  /// Errors: kInvalid if the file is damaged, or is one that other users may change.
  [[nodiscard]] Result<std::optional<std::uint64_t>> read() const;
  /// Remembers a number that is on disk in the repository, unless a higher one is remembered. Logs
  /// errors: a machine without a place for the file works without it.
  void remember(std::uint64_t sequence);
  /// Remembers a number, also if a higher one is remembered.
  /// Errors: those of writing the file.
  [[nodiscard]] Result<void> accept(std::uint64_t sequence);

 private:
  [[nodiscard]] Result<void> write(std::uint64_t sequence, bool lower);

  const std::string folder_;  // "" = nothing is remembered.
  const std::string id_;
  std::mutex mutex_;  // Guards the members below, and orders this process's writers. Innermost.
  std::optional<std::uint64_t> written_;  // The number that this object has written last.
  bool has_failed_ = false;               // A failure was logged.
};

/// Refuses a repository whose sequence number, which `present` returns, is lower than `memory` has.
/// Reads the memory first: a writer remembers a number only after its commit, so a reader beside it
/// sees a catalog with that number.
/// Errors: kCorrupt for a lower number; those of ClientMemory::read() and of `present`.
[[nodiscard]] Result<void> refuse_older(const ClientMemory& memory, const std::string& root,
                                        const std::function<Result<std::uint64_t>()>& present);

}  // namespace varve::repo
