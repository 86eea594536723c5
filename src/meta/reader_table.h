// SPDX-License-Identifier: Apache-2.0
// Where LMDB registers its readers: a file in memory, beside the repository's lock.mdb.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/unique_fd.h"
#include "meta/shared_memory.h"
#include "varve/result.h"

namespace varve::meta {

/// The use of an environment's reader table by this process.
///
/// LMDB maps its table of readers for writing. In the repository's own lock.mdb, each write to that
/// mapping could need a new block of a file system that copies on write, and a full disk would end
/// the process by SIGBUS. So the table is a file in memory whose name is the identity of lock.mdb.
/// lock.mdb has no content: each process that uses a table keeps a part of lock.mdb locked that is
/// the table's own. So a process notices users of another table, such as a process in another
/// container, whose readers LMDB would not see.
///
/// | bytes of lock.mdb       | lock                                                              |
/// |-------------------------|-------------------------------------------------------------------|
/// | 0                       | shared by releases that map lock.mdb                              |
/// | 1 to 2^32 - 1           | shared; LMDB of such a release would lock the byte of its process |
/// | 2^32 + the table's mark | shared by the users of that table                                 |
/// | all                     | exclusive for a compaction (docs/ORDERING.md O38)                 |
///
/// In the table, LMDB locks the first byte and a byte for each process. Each user of the table
/// shares another lock, which keeps the table's name (kUserByte). All locks but LMDB's own are
/// locks of the open file, so closing another descriptor in this process does not release them.
///
/// A process must have one object for a table at a time: OpenEnvs sees to that. Not thread-safe.
class ReaderTable {
 public:
  /// Opens the table of an environment whose lock.mdb is open as `lock`; `owner` is the owner of
  /// its data.mdb. Waits while another process compacts the environment. Where no shared memory can
  /// be used, the process gets a private table, and is the only one that may use the environment.
  /// Errors: kLocked if another table of the environment is in use; kIo if lock.mdb cannot be
  /// locked.
  [[nodiscard]] static Result<ReaderTable> open(int lock, uid_t owner);
  /// Uses these places for shared memory. Tests give places of their own.
  [[nodiscard]] static Result<ReaderTable> open(int lock, uid_t owner,
                                                const std::vector<MemoryPlace>& places);
  ReaderTable(ReaderTable&&) noexcept = default;
  ReaderTable& operator=(ReaderTable&&) = delete;
  ReaderTable(const ReaderTable&) = delete;
  ReaderTable& operator=(const ReaderTable&) = delete;
  /// Ends the use. The last user removes the table.
  ~ReaderTable();

  /// Returns the file that LMDB maps.
  [[nodiscard]] int descriptor() const { return table_.descriptor(); }
  [[nodiscard]] bool is_new() const { return table_.is_new(); }

  /// Shares LMDB's first lock of the table, so that no environment of LMDB finds itself alone.
  /// Otherwise LMDB would initialise the table a second time while this process uses it, or destroy
  /// the table's mutexes while another process opens it. Call it once LMDB has opened the table.
  void keep_initialised() const;
  /// Takes LMDB's lock of this process again: closing an environment of a shared table released it.
  void register_process() const;

  /// Keeps other processes from opening the environment. Returns false if another process has the
  /// environment open. Errors: kIo if lock.mdb cannot be locked.
  [[nodiscard]] Result<bool> exclude_others() const;
  void admit_others() const;

  /// Removes tables beside this one that no process uses: a killed process leaves its table.
  /// `is_own(inode)` returns whether this process uses a table, which is then left alone.
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

  base::UniqueFd lock_;  // An open file of its own, which has the locks of lock.mdb.
  SharedFile table_;
  off_t mark_ = 0;
};

}  // namespace varve::meta
