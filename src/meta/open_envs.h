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

/// Opens each file of LMDB once in a process, as LMDB demands. Locks of lock.mdb belong to a
/// process, so a second environment takes itself for the only one when it closes: LMDB 0.9.25 and
/// later then destroys the mutexes in the file, and the first environment fails with EINVAL from
/// then on. A reader of an open version shares the environment of the writer.
///
/// Thread-safe. mutex_ is the innermost lock; only LMDB is called with it.
class OpenEnvs {
 public:
  struct Request {
    int data = -1;  ///< Descriptor of data.mdb.
    std::string folder;
    std::size_t map_bytes = 0;
    unsigned tables_max = 0;
    unsigned flags = 0;  ///< Flags of mdb_env_open(). MDB_NOLOCK: the environment is not shared.
  };

  /// Returns the environments of this process. There is one object, because the locks are of the
  /// process.
  [[nodiscard]] static OpenEnvs& of_process();

  /// Opens an environment or shares an open one. Sets `env` on success, otherwise to null.
  /// Returns LMDB's code, 0 for success.
  [[nodiscard]] int open(const Request& request, MDB_env*& env);

  /// Gives an environment of open() back. Closes the environments of its file if no user is left.
  void close(MDB_env* env);

 private:
  struct Shared {
    MDB_env* env = nullptr;
    unsigned users = 0;
  };
  /// The environments of one file: a user that writes cannot share one that only reads.
  struct File {
    Shared reads;
    Shared writes;
  };
  using FileId = std::pair<dev_t, ino_t>;

  std::mutex mutex_;
  std::map<FileId, File> files_;
};

}  // namespace varve::meta
