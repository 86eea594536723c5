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

/// Returns the options to open the repository in `path` for a change by this process, with the key
/// that the environment names.
[[nodiscard]] OpenOptions options_to_write(const std::string& path, const StoreWaits& waits = {});
/// Returns the options to open the repository in `path` for reading.
[[nodiscard]] OpenOptions options_to_read(const std::string& path);

/// Returns the folders of Varve itself that a command must not change: that of the repository, and
/// the one where this machine remembers repositories.
[[nodiscard]] std::vector<std::string> own_folders(const std::string& repository);

/// Returns whether VARVE_TRUST, a list of paths separated by colons, contains this repository.
[[nodiscard]] bool is_trusted(const std::string& path);

/// Returns the repository that is mounted on `path`; `path` itself if it is no mount point of
/// Varve. Errors: those of control::find_mounted() but kNotFound.
[[nodiscard]] Result<std::string> repository_at(const std::string& path, control::Purpose purpose);

/// The functions below take the folder of a repository, or a directory on which it is mounted.

/// Opens a repository for reading. Works beside a process that writes.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_read(const std::string& named,
                                                               bool probe_catalog = false);
/// Returns how a command waits for the lock of a repository: as --lock-wait says, and otherwise for
/// `most`.
[[nodiscard]] control::LockWait lock_wait(std::chrono::seconds most = control::kEndingMax);

/// Choices for a repository that this process writes.
struct WriteChoices {
  std::optional<std::uint64_t> index_bytes{};  ///< Memory of the index, instead of the default.
  StoreWaits waits{};                          ///< How closing it waits for its object store.
  control::LockWait lock = lock_wait();        ///< How opening it waits for the lock.
};
/// Opens a repository for writing in this process.
/// Errors: kLocked if another process writes, for example a daemon.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_write(const std::string& named,
                                                                const WriteChoices& choices = {});

/// Opens a repository for the command to change it, here or through the daemon that has it mounted;
/// see control::open_control(). With kLook, takes no lock and only forecasts changes.
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
