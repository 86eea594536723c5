// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "io/file_system.h"
#include "varve/result.h"

namespace varve::meta {

struct EnvOptions;

/// The open files of an environment. LMDB opens by name and follows links, so EnvFiles opens and
/// checks the files first. The page check, the probe and LMDB then use these descriptors. A process
/// that replaces the names afterwards has no effect.
///
/// LMDB locks lock.mdb for the process: closing any descriptor of it in this process releases that
/// lock. So an Env keeps its EnvFiles. Copies share the descriptors.
class EnvFiles {
 public:
  /// Opens DIRECTORY/data.mdb and lock.mdb. Creates a missing data.mdb unless the environment is
  /// only read, or must exist. A reader that does not own data.mdb never opens lock.mdb: it shares
  /// options.writer_lock as long as the files are open.
  /// Errors: kLocked for such a reader while a writer holds that lock; kCorrupt if data.mdb is cut
  /// short or another kind of file is in its place; kIo if data.mdb is missing.
  [[nodiscard]] static Result<EnvFiles> open(io::FileSystem& files, const std::string& directory,
                                             const EnvOptions& options);

  /// Returns the files of an environment that no other process knows, and that LMDB reads without
  /// lock.mdb.
  [[nodiscard]] static EnvFiles of_data(const std::string& directory, base::UniqueFd data);

  /// Returns whether DIRECTORY/data.mdb is still the open file. A compaction may have replaced it
  /// before LMDB registered this process as a reader. Once LMDB has, the answer does not change.
  [[nodiscard]] Result<bool> are_current(io::FileSystem& files) const;

  [[nodiscard]] const std::string& directory() const { return open_->directory; }
  [[nodiscard]] int data() const { return open_->data.get(); }
  /// Returns the descriptor of lock.mdb, or -1 if LMDB is to work without it.
  [[nodiscard]] int lock() const { return open_->lock.get(); }

 private:
  struct Open {
    std::string directory;
    base::UniqueFd data;
    base::UniqueFd lock;
    std::unique_ptr<io::FileLock> writer_lock;
  };
  explicit EnvFiles(std::shared_ptr<const Open> open) : open_(std::move(open)) {}
  std::shared_ptr<const Open> open_;
};

/// Checks that this process can open an environment at all.
/// Errors: kUnsupported without /proc, by which LMDB gets its files.
[[nodiscard]] Result<void> check_system();

/// A folder that only this user can enter. It has the two names that LMDB expects, as symbolic
/// links to /proc/self/fd.
/// Lifetime: the destructor removes the folder.
class EnvNames {
 public:
  [[nodiscard]] static Result<EnvNames> make(const EnvFiles& files);
  EnvNames(EnvNames&& other) noexcept = default;
  EnvNames& operator=(EnvNames&&) = delete;
  EnvNames(const EnvNames&) = delete;
  EnvNames& operator=(const EnvNames&) = delete;
  ~EnvNames();

  /// Returns the folder to pass to mdb_env_open().
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  EnvNames() = default;
  std::string folder_;
};

}  // namespace varve::meta
