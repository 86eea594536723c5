// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/store_waiting.h"
#include "control/lock_wait.h"
#include "control/mounted_path.h"
#include "control/repository_control.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// Returns the options to open the repository in `path` for a change by the calling process, with
/// the key named by the environment.
[[nodiscard]] OpenOptions options_to_write(const std::string& path, const StoreWaits& waits = {});
/// Returns the options to open the repository in `path` for reading.
[[nodiscard]] OpenOptions options_to_read(const std::string& path);

/// Returns the folders of Varve that a command must not change: the repository, and the local
/// folder that remembers repositories.
[[nodiscard]] std::vector<std::string> own_folders(const std::string& repository);

/// Returns whether VARVE_TRUST, a list of paths separated by colons, contains this repository.
[[nodiscard]] bool is_trusted(const std::string& path);

/// Returns the repository mounted on `path`; `path` itself if `path` is no mount point of Varve.
/// Errors: the errors of control::find_mounted() except kNotFound.
[[nodiscard]] Result<std::string> repository_at(const std::string& path, control::Purpose purpose);

/// The functions below take the folder of a repository, or a mount point of the repository.

/// Opens a repository for reading, also beside a writing process.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_read(const std::string& named,
                                                               bool probe_catalog = false);
/// The environment variable for the option --lock-wait.
inline constexpr const char* kLockWaitVariable = "VARVE_LOCK_WAIT";
/// Returns how a command waits for the lock of a repository: for the time of --lock-wait, otherwise
/// for `most`.
[[nodiscard]] control::LockWait lock_wait(std::chrono::seconds most = control::kEndingMax);

/// As lock_wait(), for a command that reads the catalog beside a daemon: RepositoryControl::view().
[[nodiscard]] control::LockWait lock_wait_to_view(std::chrono::seconds most = control::kEndingMax);

/// Choices for a repository written by the calling process.
struct WriteChoices {
  std::optional<std::uint64_t> index_bytes{};  ///< Memory of the index, instead of the default.
  StoreWaits waits{};                          ///< How closing waits for the object store.
  control::LockWait lock = lock_wait();        ///< How opening waits for the lock.
};
/// Opens a repository for writing in the calling process.
/// Errors: kLocked if another process writes, for example a daemon.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_write(const std::string& named,
                                                                const WriteChoices& choices = {});

/// Opens a repository for changes, in the calling process or through the daemon that has the
/// repository mounted; see control::open_control(). With kLook, takes no lock and only forecasts
/// changes.
[[nodiscard]] Result<std::unique_ptr<control::RepositoryControl>> open_control(
    const std::string& named, control::Purpose purpose = control::Purpose::kChange,
    const StoreWaits& waits = {}, const control::LockWait& lock = lock_wait());

/// Closes the repository. Returns `result`, or the error of closing if `result` is no error.
template <typename Value>
[[nodiscard]] Result<Value> close_after(control::RepositoryControl& control, Result<Value> result) {
  auto closed = control.close();
  if (result && !closed) return std::move(closed).error();
  return result;
}

}  // namespace varve::cli
