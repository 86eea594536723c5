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

/// The most recently used files that a repository keeps open for reading, in all stores together.
/// Thread-safe.
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

  /// A file in use stays open beyond the limit until the last user drops the file.
  explicit OpenFiles(std::size_t files_max) : files_max_(files_max) {}

  /// Returns the file, or nullptr. Sets `state`, an argument of add().
  [[nodiscard]] File find(const Key& key, std::uint64_t& state);
  /// Caches a file opened after find(), and returns the file to use. Caches nothing if any file was
  /// forgotten after find(): `file` may be the forgotten file, and must not keep its space.
  [[nodiscard]] File add(const Key& key, std::uint64_t state, File file);
  /// Closes a removed or shortened file.
  void forget(const SegmentStore& store, SegmentNumber segment);
  /// Closes all files of a store. Lifetime: a store must not be destroyed before forget().
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
