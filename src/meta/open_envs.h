// SPDX-License-Identifier: Apache-2.0
// The environments of LMDB opened by the calling process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "meta/lmdb_types.h"
#include "meta/reader_table.h"
#include "varve/result.h"

namespace varve::meta {

/// Opens each table of readers, and each file of LMDB, once in a process, as LMDB demands. LMDB's
/// locks belong to a process: closing any descriptor of a table would release the locks of all
/// environments with the table (docs/decisions/128-one-environment-a-file-and-process.md).
///
/// Thread-safe. mutex_ is the innermost lock: OpenEnvs calls only LMDB and ReaderTable while
/// holding mutex_.
class OpenEnvs {
 private:
  struct Group;

 public:
  struct Request {
    int data = -1;  ///< Descriptor of data.mdb.
    std::string folder;
    std::size_t map_bytes = 0;
    unsigned tables_max = 0;
    unsigned flags = 0;  ///< Flags of mdb_env_open().
  };

  /// The use of one table of readers. The last use in the process closes all environments opened
  /// with the table, and then the table.
  class Use {
   public:
    Use(Use&& other) noexcept : group_(std::exchange(other.group_, nullptr)) {}
    Use& operator=(Use&&) = delete;
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use();
    [[nodiscard]] const ReaderTable& table() const;

   private:
    friend class OpenEnvs;
    explicit Use(Group* group) : group_(group) {}
    Group* group_;
  };

  /// Returns the only object of the process, because LMDB's locks belong to the process.
  [[nodiscard]] static OpenEnvs& of_process();

  /// Uses the table of the environment whose lock.mdb is open as `lock`; `owner` is the owner of
  /// the environment's data.mdb. Errors: the errors of ReaderTable::open().
  [[nodiscard]] Result<Use> use(int lock, uid_t owner);

  /// Opens an environment, or shares an open environment of the same file. Sets `env`: null after
  /// an error. Returns LMDB's code, 0 for success. Lifetime: `env` lives as long as the use.
  [[nodiscard]] int open(const Use& use, const Request& request, MDB_env*& env);
  /// Stops sharing an environment that LMDB refuses to use after a failed write of a meta page: the
  /// next open() opens the file again. The transactions of the failed environment go on; it closes
  /// with the last use of the table.
  void retire(const Use& use, const MDB_env* failed);
  /// Opens an environment not shared with other users in the process. The caller closes `env`.
  [[nodiscard]] static int open_unshared(const Request& request, MDB_env*& env);

 private:
  using FileId = std::pair<dev_t, ino_t>;
  struct Opened {
    FileId data;
    bool only_reads = false;
    MDB_env* env = nullptr;
    bool retired = false;  // See retire().
  };
  /// The environments of one table: a compaction gives the environment another data.mdb.
  struct Group {
    ReaderTable table;
    unsigned users = 0;
    std::vector<Opened> envs;
  };
  void leave(const Group* group);
  void remove_unused_tables(const ReaderTable& table);

  std::mutex mutex_;
  std::map<FileId, Group> groups_;  // By the identity of lock.mdb.
  bool has_cleaned_ = false;        // True after the search for unused tables.
};

}  // namespace varve::meta
