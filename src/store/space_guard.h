// SPDX-License-Identifier: Apache-2.0
// Keeps enough of the disk free to store and seal all data accepted by writes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::store {

/// The guard's view of an open version: how much data the version still has to write.
class SpaceUser {
 public:
  virtual ~SpaceUser() = default;
  /// Returns the number of accepted bytes not on the disk yet. Takes no lock.
  [[nodiscard]] virtual std::uint64_t unwritten_bytes() const = 0;
  /// Returns the bytes that sealing will write beyond unwritten_bytes(). Takes no lock.
  [[nodiscard]] virtual std::uint64_t sealing_bytes() const = 0;
  /// Stores the accepted data in flight, and waits for completion. A failure only leaves
  /// unwritten_bytes() unchanged. Threads with locks of any version may call store_accepted(), so
  /// the user must not wait for locks of versions, nor call the guard.
  virtual void store_accepted() = 0;
};

/// Returns the free bytes that data must leave on a disk for the catalog, so that syncing, sealing
/// and deleting still work on a full disk: 1 % of the disk, from 8 to 256 MiB.
[[nodiscard]] std::uint64_t reserved_bytes(const SpaceInfo& disk);

/// Returns the free bytes that a cache leaves on a disk: more than the guard requires, so that a
/// growing cache causes no refusal of a writer; half of a small disk.
[[nodiscard]] std::uint64_t spare_bytes(const SpaceInfo& disk);

/// Returns the error kNoSpace of a disk without room for data. `missing_bytes`: how much more must
/// be free.
[[nodiscard]] Error full_disk(std::uint64_t missing_bytes);

/// Admits data before a write accepts the data, and keeps the reserve: a file that Varve removes if
/// the disk is full nevertheless. Thread-safe.
///
/// The free space never falls below the floor plus the unwritten data of all users, unless another
/// program fills the disk. The floor is the larger of reserved_bytes() and the space for sealing
/// all open versions, plus one container.
class SpaceGuard {
 public:
  /// `directory` is the repository's directory, and the reserve a file in the directory.
  /// Lifetime: `files` must outlive the guard.
  SpaceGuard(io::FileSystem& files, std::string directory);

  /// Registers a user. The guard calls `user` until remove() returns.
  void add(SpaceUser* user);
  void remove(const SpaceUser* user);

  /// Admits `bytes` more bytes. Accepted data counts with its full size until stored, although
  /// duplicates take no space, and compressed data less. So before refusing, the guard has the
  /// users store all accepted data, and has room made.
  /// Errors: kNoSpace if the disk might not take the bytes beside the data admitted before.
  [[nodiscard]] Result<void> admit(std::uint64_t bytes);
  /// Calls `ask` with the number of bytes before each write. `ask` may wait; an error of `ask`
  /// refuses the write. Call ask_before_writes() before other threads use the guard. `ask` must be
  /// thread-safe.
  void ask_before_writes(std::function<Result<void>(std::uint64_t bytes)> ask) {
    ask_ = std::move(ask);
  }
  /// Calls `make_room` before refusing `bytes`; `make_room` returns whether files were removed.
  /// Call make_room_by() before other threads use the guard. `make_room` must be thread-safe, and
  /// must not wait for locks of versions, which the caller may hold.
  void make_room_by(std::function<bool(std::uint64_t bytes)> make_room) {
    make_room_ = std::move(make_room);
  }
  /// Calls `ask`, without admitting anything. The caller holds no lock. Errors: the errors of
  /// `ask`.
  [[nodiscard]] Result<void> before_write(std::uint64_t bytes) const {
    return ask_ ? ask_(bytes) : Result<void>();
  }
  /// Checks as admit(), for bytes that will be written later, and sets nothing aside. With
  /// make_room_by(), the disk need not have room for all bytes yet, because room is made during the
  /// writes. Errors: as admit().
  [[nodiscard]] Result<void> has_room(std::uint64_t bytes);
  /// Returns the bytes that admit() would accept now.
  [[nodiscard]] std::uint64_t room() const;
  /// Returns whether users have accepted bytes that are not on the disk yet.
  [[nodiscard]] bool has_unwritten() const {
    const std::lock_guard lock(mutex_);
    return unwritten_bytes() != 0;
  }
  /// Makes the next admit() query the disk again, because other programs fill the disk, too.
  void scan_again() { budget_ = 0; }
  /// Returns whether little more will be admitted; changes should then not stay in memory for long.
  [[nodiscard]] bool is_tight() const { return tight_; }

  /// Removes the reserve. Returns whether the reserve existed; the caller then tries again.
  [[nodiscard]] bool give_up_reserve();
  /// Creates or enlarges the reserve, from at most a sixth of the free space. A missing reserve is
  /// no error.
  void keep_reserve();
  /// Creates a smaller reserve from the unused space released by give_up_reserve(), so that a disk
  /// that stays full has a reserve for the next seal or deletion. A missing reserve is no error.
  void renew_reserve();
  /// Runs `work`, which changes nothing if the disk is full. If the disk is full, gives up the
  /// reserve and runs `work` again.
  [[nodiscard]] Result<void> with_reserve(const std::function<Result<void>()>& work);

 private:
  /// Returns the size of the reserve on a disk with plenty of room.
  [[nodiscard]] std::uint64_t wanted_reserve() const;
  /// Fills the reserve up to `bytes`. The caller holds reserve_mutex_.
  [[nodiscard]] Result<void> fill_reserve(std::uint64_t present, std::uint64_t bytes);
  // The caller of the next four functions holds mutex_.
  [[nodiscard]] std::uint64_t sealing_bytes() const;
  [[nodiscard]] std::uint64_t unwritten_bytes() const;
  /// Returns the free space above the floor, less the users' unwritten bytes: below 0 if another
  /// program has filled the disk. Nullopt if the free space is unknown.
  [[nodiscard]] std::optional<std::int64_t> free_above_floor() const;
  /// Returns whether the disk has room for `wanted` more bytes, and sets the budget.
  [[nodiscard]] bool has_room_for(std::int64_t wanted);

  io::FileSystem& files_;
  const std::string directory_;
  std::function<Result<void>(std::uint64_t)> ask_;
  std::function<bool(std::uint64_t)> make_room_;
  std::atomic<std::int64_t> budget_{0};  // Bytes to admit before the guard asks the disk again.
  std::atomic<bool> tight_{false};

  mutable std::mutex mutex_;
  std::vector<SpaceUser*> users_;

  std::mutex reserve_mutex_;  // Taken before mutex_.
};

}  // namespace varve::store
