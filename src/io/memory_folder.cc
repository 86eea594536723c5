// SPDX-License-Identifier: Apache-2.0
#include "io/memory_folder.h"

#include <chrono>
#include <thread>
#include <utility>

#include "io/posix_file_system.h"

namespace varve::io {

namespace {

constexpr const char* kLockName = "lock";
constexpr int kLockTries = 200;
constexpr std::chrono::milliseconds kLockPause{5};

/// Creates a folder and all parent folders.
Result<void> make_folders(const std::string& folder) {
  const auto files = make_posix_file_system();
  for (auto end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
    VARVE_TRY(files->make_directory(folder.substr(0, end)));
    if (end == std::string::npos) return {};
  }
}

}  // namespace

bool is_unusable_memory(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kNotFound:
    case ErrorCode::kNotDirectory:
    case ErrorCode::kNotPermitted:
    case ErrorCode::kReadOnly:
      return true;
    default:
      return false;
  }
}

Result<LockedMemory> lock_memory(const std::string& folder) {
  VARVE_TRY(make_folders(folder));
  LockedMemory memory;
  VARVE_TRY_ASSIGN(memory.files, open_root(folder, {}));
  for (int tries = 1;; ++tries) {
    auto lock = memory.files->lock(folder + "/" + kLockName);
    const bool waits = !lock && lock.error().code() == ErrorCode::kLocked && tries < kLockTries;
    if (!waits) {
      VARVE_TRY_ASSIGN(memory.lock, std::move(lock));
      return memory;
    }
    std::this_thread::sleep_for(kLockPause);
  }
}

}  // namespace varve::io
