// SPDX-License-Identifier: Apache-2.0
// What a file that is written out of order is made of: ranges of recipes, ranges of its
// staging file, and holes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/coding.h"
#include "format/recipe.h"
#include "varve/result.h"
#include "version/content_reader.h"
#include "version/recipe_seek.h"

namespace varve::version {

/// Not synchronised. Memory follows the number of ranges, not their length.
///
/// A range of the staging file lies there at its own offset. What the staging file holds
/// elsewhere means nothing: truncating or punching changes the ranges only, so that the state
/// of the last checkpoint can still be read after a crash.
class StagedContent {
 public:
  enum class Source : std::uint8_t { kHole, kFile, kRecipe };

  /// `bytes` from `begin` on, all from one source.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Source source = Source::kHole;
    std::shared_ptr<OpenRecipe> recipe;
    std::uint64_t recipe_offset = 0;  ///< Of the byte at `begin`.
  };

  StagedContent() = default;
  explicit StagedContent(std::shared_ptr<OpenRecipe> recipe);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Bytes in the staging file, and ranges.
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
  [[nodiscard]] std::size_t ranges() const { return extents_.size(); }
  /// An upper bound of the bytes that are not in holes.
  [[nodiscard]] std::uint64_t data_bytes_max() const;

  /// The staging file holds these bytes now. Beyond the end the content grows, here and in
  /// clone().
  void write(std::uint64_t begin, std::uint64_t end);
  void punch(std::uint64_t begin, std::uint64_t end);
  void clone(std::uint64_t begin, std::uint64_t end, std::shared_ptr<OpenRecipe> recipe,
             std::uint64_t recipe_offset);
  void resize(std::uint64_t bytes);

  /// From `offset`, which must be below size(), to the end of its range.
  [[nodiscard]] Range at(std::uint64_t offset) const;
  /// As seek_by_blocks().
  [[nodiscard]] Result<std::uint64_t> seek(std::uint64_t offset, SeekFor wanted) const;

  void encode(std::string& out) const;
  /// The reader fails on malformed bytes.
  [[nodiscard]] static StagedContent decode(base::ByteReader& reader);

 private:
  struct Extent {
    std::uint64_t end = 0;
    std::shared_ptr<OpenRecipe> recipe;  // Null: the staging file.
    std::uint64_t recipe_offset = 0;
  };
  [[nodiscard]] Result<std::uint64_t> seek_bytes(std::uint64_t offset, SeekFor wanted) const;
  void clear(std::uint64_t begin, std::uint64_t end);
  void put(std::uint64_t begin, Extent extent);

  std::map<std::uint64_t, Extent> extents_;  // By begin; nothing was written between them.
  std::uint64_t size_ = 0;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace varve::version
