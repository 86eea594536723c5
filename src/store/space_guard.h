// SPDX-License-Identifier: Apache-2.0
// Keeps enough of the disk free that data which a write accepted can always be stored and sealed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "io/file_system.h"
#include "varve/result.h"

namespace varve::store {

/// What an open version holds in memory, as the guard asks for it.
class SpaceUser {
 public:
  virtual ~SpaceUser() = default;
  /// Bytes that were accepted and are not on the disk yet. Takes no lock.
  [[nodiscard]] virtual std::uint64_t unwritten_bytes() const = 0;
  /// Bytes that sealing will write beyond those. Takes no lock.
  [[nodiscard]] virtual std::uint64_t sealing_bytes() const = 0;
};

/// Admits data before it is accepted, and keeps the reserve: a file that is removed when the disk
/// is full nevertheless. Thread-safe.
///
/// The free space never falls below the floor plus what all users hold unwritten, unless another
/// program fills the disk. The floor is 1 % of the disk, from 8 to 256 MiB, or what sealing all
/// open versions takes if that is more; and one container.
class SpaceGuard {
 public:
  /// `directory` is the repository's; the reserve is a file in it. `files` outlives the guard.
  SpaceGuard(io::FileSystem& files, std::string directory);

  /// Until remove() returns, the guard calls `user`.
  void add(const SpaceUser* user);
  void remove(const SpaceUser* user);

  /// Errors: kNoSpace if the disk might not take `bytes` more beside what was admitted before.
  [[nodiscard]] Result<void> admit(std::uint64_t bytes);
  /// Makes the next admit() look at the disk again, which other programs fill too.
  void look_again() { budget_ = 0; }
  /// True if little more will be admitted: then changes should not be kept in memory for long.
  [[nodiscard]] bool is_tight() const { return tight_; }

  /// Removes the reserve. Returns whether there was one: then the caller tries again.
  [[nodiscard]] bool give_up_reserve();
  /// Makes the reserve, or makes it larger, if the disk has plenty of room. Having none is no
  /// error.
  void keep_reserve();

 private:
  [[nodiscard]] std::uint64_t sealing_bytes() const;  // With mutex_ held.

  io::FileSystem& files_;
  const std::string directory_;
  std::atomic<std::int64_t> budget_{0};  // May be admitted before the disk is asked again.
  std::atomic<bool> tight_{false};

  mutable std::mutex mutex_;
  std::vector<const SpaceUser*> users_;

  std::mutex reserve_mutex_;  // Taken before mutex_.
};

}  // namespace varve::store
