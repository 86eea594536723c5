// SPDX-License-Identifier: Apache-2.0
// The decoder of recipes stored as separate objects. Works piece by piece, in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "format/recipe.h"

namespace varve::format {

/// The value for an unknown file size: the maximum of off_t, so no file is longer.
inline constexpr std::uint64_t kAnyFileBytes = std::numeric_limits<std::int64_t>::max();

/// Returns the maximum number of runs in a recipe of a file of `file_bytes` bytes. The recipes of
/// all writers have far fewer runs: chunks of the smallest size take 256 bytes each. Small files
/// may alternate between single bytes and holes.
constexpr std::uint64_t recipe_runs_max(std::uint64_t file_bytes) {
  return (std::uint64_t{4} << 20) + file_bytes / 256;
}

/// Decodes one recipe piece by piece. Memory grows with the number of decoded runs, never with a
/// number that the input only claims. Not thread-safe.
class RecipeDecoder {
 public:
  /// Receives the runs in order, before the rest of the recipe is verified.
  using Visitor = std::function<void(const RecipeRun&)>;

  /// `file_bytes`: the size of the file, or kAnyFileBytes. The recipe must not describe more bytes,
  /// nor have more runs than recipe_runs_max().
  explicit RecipeDecoder(std::uint64_t file_bytes);
  /// Passes the runs to `visit` and keeps none: finish() is empty.
  RecipeDecoder(std::uint64_t file_bytes, Visitor visit);

  /// Decodes whole runs from the start of `bytes` and returns the number of bytes consumed; the
  /// caller passes the rest again, in front of the next piece. `last`: no piece follows. Returns
  /// nullopt if the bytes are malformed.
  [[nodiscard]] std::optional<std::size_t> take(std::span<const std::byte> bytes, bool last);
  /// Returns whether all runs were read.
  [[nodiscard]] bool done() const { return count_known_ && left_ == 0; }
  /// Returns the sum of the runs' bytes.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  /// Returns the runs. The caller calls finish() once, when done().
  [[nodiscard]] Recipe finish() { return std::move(recipe_); }

 private:
  const std::uint64_t file_bytes_;
  const Visitor visit_;
  bool count_known_ = false;
  std::uint64_t left_ = 0;  // Number of runs still to decode.
  std::uint64_t bytes_ = 0;
  std::optional<RecipeRun> last_;
  ChunkId base_;
  Recipe recipe_;
};

}  // namespace varve::format
