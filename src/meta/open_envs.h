// SPDX-License-Identifier: Apache-2.0
// The environments of LMDB that this process has open.
#pragma once

#include <lmdb.h>
#include <sys/types.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace varve::meta {

/// Opens each file of LMDB once in a process, as LMDB demands. POSIX locks belong to a process, so
/// an environment cannot see a second environment of the same process: when the second environment
/// closes, LMDB 0.9.25 and later destroys the mutexes in lock.mdb, and the first environment fails
/// with EINVAL from then on (docs/decisions/128-one-environment-a-file-and-process.md).
///
/// Thread-safe. mutex_ is the innermost lock: OpenEnvs calls only LMDB while holding it.
class OpenEnvs {
 public:
  struct Request {
    int data = -1;  ///< Descriptor of data.mdb.
    std::string folder;
    std::size_t map_bytes = 0;
    unsigned tables_max = 0;
    unsigned flags = 0;  ///< Flags of mdb_env_open(). MDB_NOLOCK: the environment is not shared.
  };

  /// Returns the only object of the process, because POSIX locks belong to the process.
  [[nodiscard]] static OpenEnvs& of_process();

  /// Opens an environment, or shares an open environment of the same file. Sets `env`: null after
  /// an error. Returns LMDB's code, 0 for success.
  [[nodiscard]] int open(const Request& request, MDB_env*& env);

  /// Ends the use of an environment of open(). The last user of a file closes its environments.
  void close(MDB_env* env);

 private:
  struct Shared {
    MDB_env* env = nullptr;
    unsigned users = 0;
  };
  /// The environments of one file. A writer cannot share an environment that only reads.
  struct File {
    Shared reads;
    Shared writes;
  };
  using FileId = std::pair<dev_t, ino_t>;

  std::mutex mutex_;
  std::map<FileId, File> files_;
};

}  // namespace varve::meta
