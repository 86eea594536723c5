// SPDX-License-Identifier: Apache-2.0
// The folder where this machine remembers repositories (OpenOptions::memory_folder).
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::repo {

/// The folder, for a change.
struct LockedMemory {
  std::unique_ptr<io::FileSystem> files;
  std::unique_ptr<io::FileLock> lock;
};

/// Creates the folder and those above it, and takes its lock. Another process holds it for a moment
/// only. Errors: kNotPermitted if other users may change the folder; those of the disk.
[[nodiscard]] Result<LockedMemory> lock_memory(const std::string& folder);

/// Returns whether the machine has no place for the file, or it may not be used. That is no reason
/// to refuse a repository.
[[nodiscard]] bool is_unusable_memory(const Error& error);

}  // namespace varve::repo
