// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/ids.h"
#include "store/segment_store.h"

namespace varve::store {

/// The files that a repository keeps open for reading, the ones used last, in all its stores
/// together. Thread-safe.
class OpenFiles {
 public:
  using File = std::shared_ptr<OpenSegment>;

  /// Names a file. The store serves only as a part of the name.
  struct Key {
    const SegmentStore* store = nullptr;
    SegmentNumber segment{};
    ReadMode mode = ReadMode::kPlanned;
    auto operator<=>(const Key&) const = default;
  };

  /// A file in use stays open beyond the limit until its last user drops it.
  explicit OpenFiles(std::size_t files_max) : files_max_(files_max) {}

  /// Returns the file, or nullptr. Sets `state`, which add() takes.
  [[nodiscard]] File find(const Key& key, std::uint64_t& state);
  /// Keeps a file that was opened after find(), and returns the one to use. Keeps nothing if a file
  /// was forgotten since then: it may be this one, and must not keep its space.
  [[nodiscard]] File add(const Key& key, std::uint64_t state, File file);
  /// Closes a file that was removed or shortened.
  void forget(const SegmentStore& store, SegmentNumber segment);
  /// Closes all files of a store. Lifetime: a store must not be destroyed before this call.
  void forget(const SegmentStore& store);

 private:
  using Files = std::list<std::pair<Key, File>>;
  const std::size_t files_max_;
  std::mutex mutex_;
  Files files_;  // Most recently used first.
  std::map<Key, Files::iterator> place_of_;
  std::uint64_t forgotten_ = 0;  // Calls of forget().
};

}  // namespace varve::store
