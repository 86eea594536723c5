// SPDX-License-Identifier: Apache-2.0
#include "version/staged_content.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace varve::version {

namespace {

constexpr std::uint64_t kContentBytesMax = std::numeric_limits<std::int64_t>::max();
// Numbers of the sources in a record. 0: the staging file, at the offset of the content. From 1:
// the recipes. The number after the last recipe: the staging file, at another offset.
constexpr std::uint64_t kOfFile = 0;

}  // namespace

StagedContent::StagedContent(std::shared_ptr<OpenRecipe> recipe) {
  const std::uint64_t bytes = recipe->bytes();
  if (bytes != 0) clone(0, bytes, std::move(recipe), 0);
}

std::uint64_t StagedContent::data_bytes_max() const {
  std::uint64_t in_blocks = 0;  // Bytes of the blocks touched by extents.
  std::uint64_t by_source = 0;  // Data of the sources, with at most a block more on each side.
  std::uint64_t done = 0;
  const OpenRecipe* counted = nullptr;
  for (const auto& [begin, extent] : extents_) {
    const std::uint64_t from = std::max(done, block_begin(begin));
    done = std::max(done, block_end(extent.end));
    in_blocks += done - std::min(from, done);
    if (extent.recipe == nullptr) {
      by_source += block_end(extent.end) - block_begin(begin);
    } else if (extent.recipe.get() != counted) {
      counted = extent.recipe.get();
      by_source += counted->data_bytes() + 2 * kHoleBlockBytes;
    }
  }
  return std::min({in_blocks, by_source, size_});
}

// Removes [begin, end) from every extent.
void StagedContent::clear(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  auto at = extents_.lower_bound(begin);
  if (at != extents_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != extents_.end() && at->first < end) {
    const std::uint64_t from = at->first;
    Extent extent = std::move(at->second);
    at = extents_.erase(at);
    if (extent.recipe == nullptr) {
      file_bytes_ -= std::min(extent.end, end) - std::max(from, begin);
    }
    if (extent.end > end) {
      Extent right = extent;
      right.source_offset += end - from;
      extents_.emplace(end, std::move(right));
    }
    if (from < begin) {
      extent.end = begin;
      extents_.emplace(from, std::move(extent));
    }
  }
}

// Adds an extent to a cleared range. Joins the extent with contiguous neighbours.
void StagedContent::put(std::uint64_t begin, Extent extent) {
  if (extent.recipe == nullptr) file_bytes_ += extent.end - begin;
  const auto goes_on = [](const Extent& a, std::uint64_t a_begin, const Extent& b,
                          std::uint64_t b_begin) {
    return a.end == b_begin && a.recipe == b.recipe &&
           a.source_offset + (b_begin - a_begin) == b.source_offset;
  };
  auto next = extents_.lower_bound(begin);
  if (next != extents_.end() && goes_on(extent, begin, next->second, next->first)) {
    extent.end = next->second.end;
    next = extents_.erase(next);
  }
  if (next != extents_.begin()) {
    const auto before = std::prev(next);
    if (goes_on(before->second, before->first, extent, begin)) {
      before->second.end = extent.end;
      return;
    }
  }
  extents_.emplace(begin, std::move(extent));
}

void StagedContent::write(std::uint64_t begin, std::uint64_t end, std::uint64_t file_offset) {
  clone(begin, end, nullptr, file_offset);
}

std::uint64_t StagedContent::file_end() const {
  std::uint64_t last = 0;
  for (const auto& [begin, extent] : extents_) {
    if (extent.recipe == nullptr) last = std::max(last, extent.source_offset + extent.end - begin);
  }
  return last;
}

void StagedContent::punch(std::uint64_t begin, std::uint64_t end) { clear(begin, end); }

void StagedContent::clone(std::uint64_t begin, std::uint64_t end,
                          std::shared_ptr<OpenRecipe> recipe, std::uint64_t recipe_offset) {
  if (begin >= end) return;
  clear(begin, end);
  put(begin, {end, std::move(recipe), recipe_offset});
  size_ = std::max(size_, end);
}

void StagedContent::resize(std::uint64_t bytes) {
  if (bytes < size_) clear(bytes, size_);
  size_ = bytes;
}

StagedContent::Range StagedContent::at(std::uint64_t offset) const {
  Range range;
  range.begin = offset;
  const auto after = extents_.upper_bound(offset);
  if (after != extents_.begin()) {
    const auto& [begin, extent] = *std::prev(after);
    if (extent.end > offset) {
      range.end = extent.end;
      range.source = extent.recipe == nullptr ? Source::kFile : Source::kRecipe;
      range.recipe = extent.recipe;
      range.source_offset = extent.source_offset + (offset - begin);
      return range;
    }
  }
  range.end = after == extents_.end() ? size_ : std::min(size_, after->first);
  return range;
}

Result<std::uint64_t> StagedContent::seek(std::uint64_t offset, SeekFor wanted) const {
  return seek_by_blocks(size_, offset, wanted,
                        [this](std::uint64_t at, SeekFor what) { return seek_bytes(at, what); });
}

Result<std::uint64_t> StagedContent::seek_bytes(std::uint64_t offset, SeekFor wanted) const {
  const bool data = wanted == SeekFor::kData;
  while (offset < size_) {
    const Range range = at(offset);
    if (range.source == Source::kRecipe) {
      const auto found = range.recipe->seek(range.source_offset, wanted);
      const std::uint64_t length = range.end - range.begin;
      if (found && *found - range.source_offset < length) {
        return offset + (*found - range.source_offset);
      }
    } else if ((range.source == Source::kFile) == data) {
      return offset;
    }
    offset = range.end;
    if (!data && offset == size_) return size_;
  }
  return Error(ErrorCode::kPastEnd, "past the end of the file");
}

void StagedContent::encode(std::string& out) const {
  base::ByteWriter w(out);
  std::vector<const OpenRecipe*> recipes;
  std::unordered_map<const OpenRecipe*, std::uint64_t> number_of;
  for (const auto& [begin, extent] : extents_) {
    if (extent.recipe == nullptr || number_of.contains(extent.recipe.get())) continue;
    recipes.push_back(extent.recipe.get());
    number_of[extent.recipe.get()] = recipes.size();
  }
  w.varint(size_);
  w.varint(recipes.size());
  ChunkId id_base;
  for (const auto* recipe : recipes) format::encode_recipe(recipe->recipe(), id_base, out);
  w.varint(extents_.size());
  std::uint64_t last_end = 0;
  for (const auto& [begin, extent] : extents_) {
    w.varint(begin - last_end);
    w.varint(extent.end - begin);
    std::uint64_t source = kOfFile;
    if (extent.recipe != nullptr) {
      source = number_of[extent.recipe.get()];
    } else if (extent.source_offset != begin) {
      source = recipes.size() + 1;
    }
    w.varint(source);
    if (source != kOfFile) w.svarint(static_cast<std::int64_t>(extent.source_offset - begin));
    last_end = extent.end;
  }
}

StagedContent StagedContent::decode(base::ByteReader& r) {
  StagedContent content;
  const std::uint64_t size = r.varint();
  std::vector<std::shared_ptr<OpenRecipe>> recipes;
  const std::uint64_t recipe_count = r.varint();
  ChunkId id_base;
  for (std::uint64_t i = 0; i < recipe_count && r.ok(); ++i) {
    recipes.push_back(std::make_shared<OpenRecipe>(
        std::make_shared<const format::Recipe>(format::decode_recipe(r, id_base))));
  }
  const std::uint64_t extent_count = r.varint();
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < extent_count && r.ok(); ++i) {
    const std::uint64_t gap = r.varint();
    const std::uint64_t length = r.varint();
    const std::uint64_t source = r.varint();
    if (gap > kContentBytesMax - at || length == 0 || length > kContentBytesMax - at - gap ||
        source > recipes.size() + 1) {
      r.fail();
      break;
    }
    const std::uint64_t begin = at + gap;
    at = begin + length;
    if (source == kOfFile) {
      content.write(begin, at, begin);
      continue;
    }
    const std::uint64_t offset = begin + static_cast<std::uint64_t>(r.svarint());
    if (source > recipes.size()) {
      if (offset > kContentBytesMax - length) {
        r.fail();
        break;
      }
      content.write(begin, at, offset);
      continue;
    }
    const auto& recipe = recipes[source - 1];
    if (offset > recipe->bytes() || length > recipe->bytes() - offset) {
      r.fail();
      break;
    }
    content.clone(begin, at, recipe, offset);
  }
  if (size < at || size > kContentBytesMax) r.fail();
  if (r.ok()) content.resize(size);
  return content;
}

}  // namespace varve::version
