// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.h"
#include "io/file_system.h"
#include "meta/open_envs.h"
#include "varve/result.h"

namespace varve::meta {

struct EnvOptions;

/// The open files of an environment. LMDB opens by name and follows links, so EnvFiles opens and
/// checks the files first. The page check, the probe and LMDB then use the descriptors of EnvFiles.
/// A process that replaces the names afterwards has no effect. Copies share the descriptors.
class EnvFiles {
 public:
  /// Opens DIRECTORY/data.mdb, and joins the users of the environment's reader table, found by
  /// lock.mdb. Creates a missing data.mdb unless the environment is only read, or must exist. No
  /// compaction replaces data.mdb as long as the files are open.
  ///
  /// A reader has no table if the reader does not own data.mdb, if no lock.mdb can be opened, or if
  /// another table is in use (ReaderTable). A reader without a table shares options.writer_lock
  /// instead.
  /// Errors: kLocked for a reader without a table while a writer holds options.writer_lock, and for
  /// a writer while another table is in use; kBusy if data.mdb is replaced again and again;
  /// kCorrupt if data.mdb is cut short or is not a regular file; kIo if data.mdb is missing.
  [[nodiscard]] static Result<EnvFiles> open(io::FileSystem& files, const std::string& directory,
                                             const EnvOptions& options);

  /// Returns the files of an environment unknown to all other processes, for LMDB without a reader
  /// table.
  [[nodiscard]] static EnvFiles of_data(const std::string& directory, base::UniqueFd data);

  [[nodiscard]] const std::string& directory() const { return open_->directory; }
  [[nodiscard]] int data() const { return open_->data.get(); }
  /// Returns the use of the reader table, or null if LMDB is to work without a table.
  [[nodiscard]] const OpenEnvs::Use* use() const { return open_->use ? &*open_->use : nullptr; }
  [[nodiscard]] const ReaderTable* table() const { return use() ? &use()->table() : nullptr; }

 private:
  struct Open {
    std::string directory;
    base::UniqueFd data;
    std::optional<OpenEnvs::Use> use;
    std::unique_ptr<io::FileLock> writer_lock;
  };
  explicit EnvFiles(std::shared_ptr<const Open> open) : open_(std::move(open)) {}
  static Result<EnvFiles> open_once(io::FileSystem& files, const std::string& directory,
                                    const EnvOptions& options);
  /// Returns whether DIRECTORY/data.mdb is still the open file.
  [[nodiscard]] Result<bool> are_current(io::FileSystem& files) const;

  std::shared_ptr<const Open> open_;
};

/// Checks that the calling process can open any environment.
/// Errors: kUnsupported without /proc, through which LMDB opens the files.
[[nodiscard]] Result<void> check_system();

/// A folder accessible to the calling user only. The folder has the two names that LMDB expects, as
/// symbolic links to /proc/self/fd: `data.mdb` for the environment's file, `lock.mdb` for the
/// reader table.
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
  void remove();
  std::string folder_;
};

}  // namespace varve::meta
