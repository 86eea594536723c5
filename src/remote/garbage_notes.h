// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "meta/lmdb.h"
#include "varve/result.h"

namespace varve::remote {

/// Limits for the locks of objects to remove, in seconds since 1970.
struct GarbageLocks {
  /// A noted lock ends before this time.
  std::int64_t noted_before = std::numeric_limits<std::int64_t>::max();
  /// An object without a noted lock became garbage before this time.
  std::int64_t unknown_before = std::numeric_limits<std::int64_t>::max();
};

/// The folder's notes about objects of the store that wait for removal. Thread-safe: each call is
/// one transaction of the folder's state, or a few.
class GarbageNotes {
 public:
  /// Lifetime: `state` outlives the notes.
  explicit GarbageNotes(const meta::Env& state) : state_(state) {}

  /// Notes objects for removal later than `seconds`, once the head of the given number exists. An
  /// already noted object keeps its note. Returns the number of new notes.
  [[nodiscard]] Result<std::uint64_t> add(const std::vector<std::string>& names,
                                          std::int64_t seconds, std::uint64_t number);
  /// Returns at most `max` objects noted before `before`, in seconds, whose head exists if the
  /// newest head is `head`. Omits possibly locked objects.
  [[nodiscard]] Result<std::vector<std::string>> due(std::int64_t before, std::uint64_t head,
                                                     std::size_t max,
                                                     const GarbageLocks& locks = {}) const;
  /// Notes objects again, as from `seconds` on, after a failed removal.
  [[nodiscard]] Result<void> postpone(const std::vector<std::string>& names, std::int64_t seconds);
  [[nodiscard]] Result<void> forget(const std::vector<std::string>& names);
  /// Returns the number of objects waiting for removal.
  [[nodiscard]] Result<std::uint64_t> count() const;

 private:
  const meta::Env& state_;
};

/// Returns the value of a note: the time in seconds, and the number of the head without the object.
[[nodiscard]] std::string garbage_note(std::int64_t seconds, std::uint64_t number);

}  // namespace varve::remote
