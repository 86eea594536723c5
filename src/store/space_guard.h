// SPDX-License-Identifier: Apache-2.0
// Keeps enough of the disk free to store and seal all data that a write has accepted.
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
  /// Returns the bytes that were accepted and are not on the disk yet. Takes no lock.
  [[nodiscard]] virtual std::uint64_t unwritten_bytes() const = 0;
  /// Returns the bytes that sealing will write beyond those. Takes no lock.
  [[nodiscard]] virtual std::uint64_t sealing_bytes() const = 0;
  /// Stores the accepted data that is on its way, and waits for that. A failure only leaves
  /// unwritten_bytes() as it is. May be called by a thread that holds locks of any version, so it
  /// must not wait for them, nor call the guard.
  virtual void store_accepted() = 0;
};

/// Returns the free bytes that data must leave on a disk for the catalog, so that syncing, sealing
/// and deleting still work on a full one: 1 % of the disk, from 8 to 256 MiB.
[[nodiscard]] std::uint64_t reserved_bytes(const SpaceInfo& disk);

/// Returns the free bytes that a cache leaves on a disk: more than the guard asks for, so that it
/// refuses no writer meanwhile; half of a small disk.
[[nodiscard]] std::uint64_t spare_bytes(const SpaceInfo& disk);

/// Admits data before a write accepts it, and keeps the reserve: a file that Varve removes when the
/// disk is full nevertheless. Thread-safe.
///
/// The free space never falls below the floor plus the unwritten data of all users, unless another
/// program fills the disk. The floor is 1 % of the disk, from 8 to 256 MiB, or the space for
/// sealing all open versions if that is more; plus one container.
class SpaceGuard {
 public:
  /// `directory` is the repository's; the reserve is a file in it.
  /// Lifetime: `files` must outlive the guard.
  SpaceGuard(io::FileSystem& files, std::string directory);

  /// Registers a user. The guard calls `user` until remove() returns.
  void add(SpaceUser* user);
  void remove(const SpaceUser* user);

  /// Admits `bytes` more bytes. Accepted data counts with its full size until it is stored,
  /// although duplicates take no space, and other data less after compression. So before the guard
  /// refuses, it has the users store what they accepted, and has room made. Errors: kNoSpace if the
  /// disk might not take them beside the data that was admitted before.
  [[nodiscard]] Result<void> admit(std::uint64_t bytes);
  /// Calls `ask` with the number of bytes before each write. It may wait, and an error refuses the
  /// write. Call it before other threads use the guard. `ask` must be thread-safe.
  void ask_before_writes(std::function<Result<void>(std::uint64_t bytes)> ask) {
    ask_ = std::move(ask);
  }
  /// Calls `make_room` before so many bytes are refused; it returns whether it removed files.
  /// Call this before other threads use the guard. `make_room` must be thread-safe, and must not
  /// wait for locks of versions, which its caller may hold.
  void make_room_by(std::function<bool(std::uint64_t bytes)> make_room) {
    make_room_ = std::move(make_room);
  }
  /// Asks, without admitting anything. The caller holds no lock. Errors: those of `ask`.
  [[nodiscard]] Result<void> before_write(std::uint64_t bytes) const {
    return ask_ ? ask_(bytes) : Result<void>();
  }
  /// Checks as admit(), for bytes that will be written later, and sets nothing aside. Where room is
  /// made meanwhile (make_room_by()), the disk need not have it for all of them. Errors: as
  /// admit().
  [[nodiscard]] Result<void> has_room(std::uint64_t bytes);
  /// Returns the bytes that admit() would still take now.
  [[nodiscard]] std::uint64_t room() const;
  /// Returns whether users have accepted bytes that are not on the disk yet.
  [[nodiscard]] bool has_unwritten() const {
    const std::lock_guard lock(mutex_);
    return unwritten_bytes() != 0;
  }
  /// Makes the next admit() look at the disk again, because other programs fill it, too.
  void scan_again() { budget_ = 0; }
  /// Returns whether little more will be admitted; changes should then not stay in memory for long.
  [[nodiscard]] bool is_tight() const { return tight_; }

  /// Removes the reserve. Returns whether there was one; the caller then tries again.
  [[nodiscard]] bool give_up_reserve();
  /// Creates the reserve, or enlarges it, if the disk has plenty of room. Having none is no error.
  void keep_reserve();
  /// Creates a smaller reserve of what give_up_reserve() released and nothing needed, so that a
  /// disk that stays full has a reserve for the next seal or deletion. Having none is no error.
  void renew_reserve();
  /// Does `work`, which changes nothing if the disk is full. If the disk is full, gives the reserve
  /// up and does `work` again.
  [[nodiscard]] Result<void> with_reserve(const std::function<Result<void>()>& work);

 private:
  /// Returns the size of the reserve on a disk with plenty of room.
  [[nodiscard]] std::uint64_t wanted_reserve() const;
  /// Fills the reserve up to `bytes`. The caller holds reserve_mutex_.
  [[nodiscard]] Result<void> fill_reserve(std::uint64_t present, std::uint64_t bytes);
  // The caller of these four holds mutex_.
  [[nodiscard]] std::uint64_t sealing_bytes() const;
  [[nodiscard]] std::uint64_t unwritten_bytes() const;
  /// Returns the bytes between the free space and the floor, less what users have to write: below 0
  /// if another program has filled the disk. Nullopt if the disk does not tell.
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
