// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "format/recipe.h"

namespace varve::restore {

/// A position in a file, expressed in the runs of its recipe.
struct FilePosition {
  std::size_t run = 0;  ///< Number of the run; runs.size() at the end of the file.
  std::uint64_t run_offset = 0;
  std::uint64_t data_offset = 0;  ///< Bytes of data, not of holes, before the position.
};

/// The two kinds of runs to search for.
enum class RunKind : std::uint8_t { kData, kHole };

/// Finds the run that holds a byte of a file. Marks every 64th run, so that a search takes O(log n)
/// even in a recipe of a million runs. Builds the marks at the first search. Thread-safe; never
/// waits for I/O.
class RecipeIndex {
 public:
  explicit RecipeIndex(std::shared_ptr<const format::Recipe> recipe) : recipe_(std::move(recipe)) {}

  [[nodiscard]] const format::Recipe& recipe() const { return *recipe_; }
  [[nodiscard]] std::uint64_t file_bytes();
  [[nodiscard]] FilePosition find(std::uint64_t offset);
  /// Returns the offset of the first byte at or after `offset` in a run of the wanted kind; nullopt
  /// if no such run follows.
  [[nodiscard]] std::optional<std::uint64_t> seek(std::uint64_t offset, RunKind wanted);
  /// Returns the number of runs visited by all searches together, for tests of the search cost.
  [[nodiscard]] std::uint64_t runs_visited() const {
    return visited_.load(std::memory_order_relaxed);
  }

 private:
  struct Mark {
    std::uint64_t offset = 0;
    std::uint64_t data_offset = 0;
  };
  void build();

  const std::shared_ptr<const format::Recipe> recipe_;
  std::once_flag built_;
  std::vector<Mark> marks_;  // Positions before every 64th run.
  std::uint64_t file_bytes_ = 0;
  std::atomic<std::uint64_t> visited_ = 0;
};

}  // namespace varve::restore
