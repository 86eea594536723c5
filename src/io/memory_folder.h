// SPDX-License-Identifier: Apache-2.0
// The folder where the local machine remembers repositories (OpenOptions::memory_folder).
#pragma once

#include <memory>
#include <string>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::io {

/// The folder, for a change.
struct LockedMemory {
  std::unique_ptr<FileSystem> files;
  std::unique_ptr<FileLock> lock;
};

/// Creates the folder and all parent folders, and takes the folder's lock. Another process holds
/// the lock for a moment only. Errors: kNotPermitted if other users may change the folder; errors
/// of the disk.
[[nodiscard]] Result<LockedMemory> lock_memory(const std::string& folder);

/// Returns whether the machine has no place for the file, or the place may not be used. An unusable
/// memory is no reason to refuse a repository.
[[nodiscard]] bool is_unusable_memory(const Error& error);

}  // namespace varve::io
