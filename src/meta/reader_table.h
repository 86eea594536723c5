// SPDX-License-Identifier: Apache-2.0
// LMDB's table of readers: a file in memory, beside the repository's lock.mdb.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/unique_fd.h"
#include "meta/shared_memory.h"
#include "varve/result.h"

namespace varve::meta {

/// The use of an environment's reader table by the calling process.
///
/// LMDB maps its table of readers for writing. In the repository's own lock.mdb, each write to the
/// mapping could need a new block of a file system that copies on write, and a full disk would end
/// the process by SIGBUS. So the table is a file in memory, named by the identity of lock.mdb.
/// lock.mdb has no content: each process that uses a table keeps the table's part of lock.mdb
/// locked. So a process notices users of another table, such as a process in another container,
/// whose readers LMDB would not see.
///
/// | bytes of lock.mdb       | lock                                                              |
/// |-------------------------|-------------------------------------------------------------------|
/// | 0                       | shared by releases that map lock.mdb                              |
/// | 1 to 2^32 - 1           | shared; LMDB of such a release would lock the byte of its process |
/// | 2^32 + the table's mark | shared by the users of the table with the mark                    |
/// | all                     | exclusive for a compaction (docs/ORDERING.md O38)                 |
///
/// In the table, LMDB locks the first byte and a byte for each process. Each user of the table
/// shares another lock, which keeps the table's name (kUserByte). All locks but LMDB's own are
/// locks of the open file, so closing another descriptor in the process does not release the locks.
///
/// A process must have a single ReaderTable for a table at a time, ensured by OpenEnvs. Not
/// thread-safe.
class ReaderTable {
 public:
  /// Opens the table of an environment whose lock.mdb is open as `lock`; `owner` is the owner of
  /// the environment's data.mdb. Waits while another process compacts the environment. Without
  /// usable shared memory, the process gets a private table and exclusive use of the environment.
  /// Errors: kLocked if another table of the environment is in use; kIo if lock.mdb cannot be
  /// locked.
  [[nodiscard]] static Result<ReaderTable> open(int lock, uid_t owner);
  /// Uses `places` for shared memory. Tests pass private places.
  [[nodiscard]] static Result<ReaderTable> open(int lock, uid_t owner,
                                                const std::vector<MemoryPlace>& places);
  ReaderTable(ReaderTable&&) noexcept = default;
  ReaderTable& operator=(ReaderTable&&) = delete;
  ReaderTable(const ReaderTable&) = delete;
  ReaderTable& operator=(const ReaderTable&) = delete;
  /// Ends the use. The last user removes the table.
  ~ReaderTable();

  /// Returns the file mapped by LMDB.
  [[nodiscard]] int descriptor() const { return table_.descriptor(); }
  [[nodiscard]] bool is_new() const { return table_.is_new(); }

  /// Shares LMDB's first lock of the table, so that no environment of LMDB gets the table alone.
  /// Otherwise LMDB would initialise the table again while the process uses the table, or destroy
  /// the table's mutexes while another process opens the table. Call keep_initialised() once LMDB
  /// has opened the table.
  void keep_initialised() const;
  /// Takes LMDB's lock of the process again, released when an environment of a shared table was
  /// closed.
  void register_process() const;

  /// Keeps other processes from opening the environment. Returns false if another process has the
  /// environment open. Errors: kIo if lock.mdb cannot be locked.
  [[nodiscard]] Result<bool> exclude_others() const;
  void admit_others() const;

  /// Removes unused tables in the same folder: a killed process leaves its table. Skips each table
  /// for which `is_own(inode)` returns true: a table used by the calling process.
  template <typename IsOwn>
  void remove_unused(const IsOwn& is_own) const {
    for (const auto& name : names_beside()) {
      if (!is_own(name.inode)) remove_if_unused(name);
    }
  }

 private:
  struct Name {
    std::string name;
    ino_t inode = 0;
  };
  ReaderTable(base::UniqueFd lock, SharedFile table, off_t mark)
      : lock_(std::move(lock)), table_(std::move(table)), mark_(mark) {}
  [[nodiscard]] std::vector<Name> names_beside() const;
  void remove_if_unused(const Name& name) const;

  base::UniqueFd lock_;  // A separate open file, which has the locks of lock.mdb.
  SharedFile table_;
  off_t mark_ = 0;
};

}  // namespace varve::meta
