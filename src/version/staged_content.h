// SPDX-License-Identifier: Apache-2.0
// The content of a file written out of order: ranges of recipes, ranges of the staging file, and
// holes.
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
#include "version/open_recipe.h"
#include "version/recipe_seek.h"

namespace varve::version {

/// The ranges that make up a staged file. Not thread-safe. The memory depends on the number of
/// ranges, not on the length of the ranges.
///
/// Truncating and punching change only the ranges, and leave the bytes in the staging file. So
/// after a crash, the file still holds the state of the last checkpoint.
class StagedContent {
 public:
  enum class Source : std::uint8_t { kHole, kFile, kRecipe };

  /// The bytes from `begin` to `end`, all from one source.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Source source = Source::kHole;
    std::shared_ptr<OpenRecipe> recipe;
    /// Offset of the byte at `begin` in the recipe or, by StagingFile::read(), in the staging file.
    std::uint64_t source_offset = 0;
  };

  StagedContent() = default;
  explicit StagedContent(std::shared_ptr<OpenRecipe> recipe);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Returns the number of bytes in ranges of the staging file.
  [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
  /// Returns the end of the part of the staging file in use by ranges.
  [[nodiscard]] std::uint64_t file_end() const;
  /// Returns the number of ranges, holes not included.
  [[nodiscard]] std::size_t ranges() const { return extents_.size(); }
  /// Returns an upper bound of the bytes outside of holes.
  [[nodiscard]] std::uint64_t data_bytes_max() const;

  /// Records that the staging file now holds the bytes from `begin` to `end`, at `file_offset`. The
  /// content grows to `end`.
  void write(std::uint64_t begin, std::uint64_t end, std::uint64_t file_offset);
  /// Turns the range into a hole. Does not change the size.
  void punch(std::uint64_t begin, std::uint64_t end);
  /// Records that the bytes from `begin` to `end` are the bytes of `recipe` at `recipe_offset`. The
  /// content grows to `end`.
  void clone(std::uint64_t begin, std::uint64_t end, std::shared_ptr<OpenRecipe> recipe,
             std::uint64_t recipe_offset);
  /// Cuts the content at `bytes`, or grows it with a hole.
  void resize(std::uint64_t bytes);

  /// Returns the rest of the range with the byte at `offset`: from `offset` to the range's end.
  /// `offset` must be below size().
  [[nodiscard]] Range at(std::uint64_t offset) const;
  /// Returns an offset as seek_by_blocks() does.
  [[nodiscard]] Result<std::uint64_t> seek(std::uint64_t offset, SeekFor wanted) const;

  /// Appends the ranges in the form of the overlay's records.
  void encode(std::string& out) const;
  /// Decodes the bytes of encode(). The reader fails on malformed bytes.
  [[nodiscard]] static StagedContent decode(base::ByteReader& reader);

 private:
  struct Extent {
    std::uint64_t end = 0;
    std::shared_ptr<OpenRecipe> recipe;  // Null: the staging file.
    std::uint64_t source_offset = 0;
  };
  [[nodiscard]] Result<std::uint64_t> seek_bytes(std::uint64_t offset, SeekFor wanted) const;
  void clear(std::uint64_t begin, std::uint64_t end);
  void put(std::uint64_t begin, Extent extent);

  std::map<std::uint64_t, Extent> extents_;  // Extents by begin; gaps are holes.
  std::uint64_t size_ = 0;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace varve::version
