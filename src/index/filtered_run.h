// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "index/index_run.h"
#include "index/run_format.h"
#include "varve/result.h"

namespace varve::index {

/// A run and its filters in memory, so that a lookup of an unknown tag reads no disk. Thread-safe.
///
/// The first find() reads all filters. So neither an opening nor a process without lookups reads a
/// filter.
class FilteredRun {
 public:
  /// If `keeps_filters` is false, the filters stay on disk, and find() reads one block of filters.
  FilteredRun(std::shared_ptr<const IndexRun> run, bool keeps_filters)
      : run_(std::move(run)), keeps_filters_(keeps_filters) {}

  /// Returns the memory of a run's filters, in bytes.
  [[nodiscard]] static std::size_t filter_bytes(const IndexRun& run) {
    return run.header().shape.groups() * kBlockBytes;
  }

  /// Returns the id of the run's entry for the tag.
  /// Errors: as IndexRun::find().
  [[nodiscard]] Result<std::optional<ChunkId>> find(const Tag& tag);
  /// Returns true if the filters in memory do not exclude an entry for the tag. Returns false if
  /// the run has no filters in memory.
  [[nodiscard]] bool may_have(const Tag& tag) const;

  /// Marks the run as damaged. Returns false if already marked.
  bool mark_damaged() { return !damaged_.exchange(true); }
  [[nodiscard]] bool is_damaged() const { return damaged_; }
  [[nodiscard]] bool keeps_filters() const { return keeps_filters_; }
  [[nodiscard]] const std::shared_ptr<const IndexRun>& run() const { return run_; }
  /// Returns the memory of the object with its run, in bytes.
  [[nodiscard]] std::size_t bytes() const;

 private:
  void load();
  [[nodiscard]] std::span<const std::byte, kBlockBytes> filter_of(const Tag& tag) const;

  const std::shared_ptr<const IndexRun> run_;
  const bool keeps_filters_;
  std::atomic<bool> damaged_{false};
  std::once_flag load_once_;
  Result<void> load_outcome_;
  std::vector<Block> filters_;
  std::atomic<bool> loaded_{false};  // Set once filters_ is complete.
};

}  // namespace varve::index
