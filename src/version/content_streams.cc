// SPDX-License-Identifier: Apache-2.0
#include "version/content_streams.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "version/recipe_seek.h"

namespace varve::version {

namespace {
constexpr std::uint64_t kTailBytesMax = 128U << 10;

bool ends_in_hole(const ingest::Content& content) {
  return content.tail.empty() && !content.recipe.runs.empty() &&
         content.recipe.runs.back().is_hole();
}
}  // namespace

Result<void> ContentStreams::load_recipe(OpenInode& inode) {
  if (inode.content.recipe) return {};
  if (!state_.parts.base) return Error(ErrorCode::kCorrupt, "a file without a recipe");
  return state_.parts.base->load_recipe(inode);
}

Result<void> ContentStreams::start(OpenInode& inode) {
  if (inode.content.has_growing_stream()) return {};
  VARVE_TRY(load_recipe(inode));
  ingest::Content content;
  if (inode.content.stream) {
    VARVE_TRY_ASSIGN(content, settle(inode));
  } else {
    content.recipe = *inode.content.recipe;
  }
  // The last chunk ended at the file's end; the bytes that follow may move the chunk's boundary.
  if (content.tail.empty()) {
    VARVE_TRY_ASSIGN(content.tail, state_.reader.take_last_chunk(content.recipe));
  }
  run(inode, std::move(content));
  return {};
}

void ContentStreams::run(OpenInode& inode, ingest::Content content) {
  inode.content.ends_in_hole = ends_in_hole(content);
  inode.content.stream = state_.pipeline.start(std::move(content));
  inode.content.stream_finished = false;
}

Result<void> ContentStreams::append(OpenInode& inode, std::uint64_t offset,
                                    std::span<const std::byte> data) {
  VARVE_TRY(start(inode));
  if (offset > inode.content.size || inode.content.ends_in_hole) {
    VARVE_TRY(grow_to_data(inode, offset));
  }
  return state_.pipeline.append(inode.content.stream, data);
}

Result<void> ContentStreams::grow(OpenInode& inode, std::uint64_t bytes) {
  VARVE_TRY(start(inode));
  return grow_stream(inode, bytes);
}

// Grows the file to `end` with less than one block of zeros.
Result<void> ContentStreams::append_zeros(OpenInode& inode, std::uint64_t end) {
  static constexpr std::array<std::byte, kHoleBlockBytes> kZeros{};
  if (end == inode.content.size) return {};
  VARVE_TRY(state_.pipeline.append(inode.content.stream,
                                   std::span(kZeros).first(end - inode.content.size)));
  inode.content.size = end;
  inode.content.ends_in_hole = false;
  return {};
}

Result<void> ContentStreams::grow_stream(OpenInode& inode, std::uint64_t bytes) {
  if (!inode.content.ends_in_hole) {
    VARVE_TRY(append_zeros(inode, std::min(bytes, block_end(inode.content.size))));
  }
  if (bytes == inode.content.size) return {};
  VARVE_TRY(state_.pipeline.append_hole(inode.content.stream, bytes - inode.content.size));
  inode.content.hole_bytes += bytes - inode.content.size;
  inode.content.size = bytes;
  inode.content.ends_in_hole = true;
  return {};
}

// Grows the file to `offset`, where data follows. Therefore the block of `offset` must not begin
// with a hole.
Result<void> ContentStreams::grow_to_data(OpenInode& inode, std::uint64_t offset) {
  const std::uint64_t begin = block_begin(offset);
  if (begin > inode.content.size) VARVE_TRY(grow_stream(inode, begin));
  if (inode.content.ends_in_hole && begin < inode.content.size) {
    VARVE_TRY_ASSIGN(auto content, settle(inode));
    // In recipes of older versions of Varve, holes begin anywhere in a block.
    VARVE_TRY_ASSIGN(content.tail, state_.reader.cut_last_hole(content.recipe, begin));
    content.tail.resize(inode.content.size - content.recipe.bytes());
    inode.content.hole_bytes = content.recipe.bytes() - content.recipe.data_bytes();
    run(inode, std::move(content));
    inode.content.clear_recipe();
  }
  VARVE_TRY(append_zeros(inode, offset));
  inode.content.ends_in_hole = false;
  return {};
}

Result<void> ContentStreams::shrink(OpenInode& inode, std::uint64_t bytes) {
  VARVE_TRY_ASSIGN(auto content, settle(inode));
  const std::uint64_t cut = content.recipe.bytes();
  if (bytes >= cut) {
    content.tail.resize(bytes - cut);
  } else {
    VARVE_TRY_ASSIGN(content.tail, state_.reader.cut(content.recipe, bytes));
  }
  if (inode.content.stream) state_.pipeline.discard(inode.content.stream);
  inode.content.hole_bytes = content.recipe.bytes() - content.recipe.data_bytes();
  run(inode, std::move(content));
  inode.content.clear_recipe();
  return {};
}

Result<void> ContentStreams::finish(OpenInode& inode) {
  if (!inode.content.has_growing_stream()) return {};
  inode.content.stream_finished = true;
  finishing_.push_back(inode.ino);
  state_.tree.touch(inode);
  return state_.pipeline.finish(inode.content.stream);
}

void ContentStreams::absorb(OpenInode& inode) {
  if (!inode.content.stream || !inode.content.stream_finished) return;
  auto recipe = state_.pipeline.take_finished(inode.content.stream);
  if (!recipe) return;
  inode.content.end_stream();
  rest(inode, std::move(*recipe));
}

Result<ingest::Content> ContentStreams::settle(OpenInode& inode) {
  VARVE_TRY(load_recipe(inode));
  if (!inode.content.stream) return ingest::Content{*inode.content.recipe, {}};
  VARVE_TRY_ASSIGN(auto content, state_.pipeline.settle(inode.content.stream));
  state_.pipeline.discard(inode.content.stream);
  inode.content.end_stream();
  // In case the caller fails: the cut part comes to rest, and the tail goes on in a stream.
  inode.content.recipe = std::make_shared<const format::Recipe>(content.recipe);
  if (!content.tail.empty()) inode.content.stream = state_.pipeline.start(content);
  return content;
}

void ContentStreams::rest(OpenInode& inode, format::Recipe recipe) {
  inode.content.set_recipe(std::move(recipe));
  state_.tree.touch(inode);
}

Result<void> ContentStreams::come_to_rest(OpenInode& inode) {
  if (inode.content.stream) {
    VARVE_TRY(finish(inode));
    // A full disk may lack a place only for another file's chunks.
    const auto drained = state_.pipeline.drain();
    absorb(inode);
    if (inode.content.stream && !drained) return drained;
    if (inode.content.stream) {
      return Error(ErrorCode::kIo, "a file's last bytes are not stored yet");
    }
  }
  return load_recipe(inode);
}

void ContentStreams::discard(OpenInode& inode) {
  if (!inode.content.stream) return;
  state_.pipeline.discard(inode.content.stream);
  inode.content.end_stream();
}

Result<void> ContentStreams::recover_tails() {
  std::vector<std::pair<Ino, std::string>> tails;
  VARVE_TRY(state_.tree.for_each_tail([&](Ino ino, std::string_view tail) -> Result<void> {
    tails.emplace_back(ino, tail);
    return {};
  }));
  for (const auto& [ino, tail] : tails) {
    VARVE_TRY_ASSIGN(auto* inode, state_.tree.get(ino));
    if (!inode->is_regular() || inode->staging.is_staged() || !inode->content.recipe) {
      return damaged_overlay("last bytes without a file");
    }
    ingest::Content content;
    content.recipe = *inode->content.recipe;
    const auto bytes = base::as_bytes(tail);
    content.tail.assign(bytes.begin(), bytes.end());
    inode->content.size = content.bytes();
    inode->content.stream = state_.pipeline.start(std::move(content));
    waiting_tails_.push_back(ino);
  }
  return {};
}

// The overlay holds a recovered tail until the tail's chunks are stored, so cutting is not urgent.
// A seal, however, needs all tails cut.
Result<void> ContentStreams::finish_tails(Urgency urgency) {
  while (!waiting_tails_.empty()) {
    const auto found = state_.tree.get(waiting_tails_.back());
    if (found && (*found)->content.has_growing_stream() && (*found)->writers == 0) {
      if (urgency == Urgency::kIfAdmitted && !state_.admit(kTailBytesMax)) return {};
      VARVE_TRY(finish(**found));
    }
    waiting_tails_.pop_back();
  }
  return {};
}

Result<void> ContentStreams::absorb_finished() {
  std::vector<Ino> still_finishing;
  for (const Ino ino : finishing_) {
    auto inode = state_.tree.get(ino);
    if (!inode) continue;
    const auto& stream = (*inode)->content.stream;
    // Finishes the stream again, in case the spilled tail could not be read back the first time.
    if (stream && (*inode)->content.stream_finished) VARVE_TRY(state_.pipeline.finish(stream));
    absorb(**inode);
    if (stream) still_finishing.push_back(ino);
  }
  finishing_ = std::move(still_finishing);
  return {};
}

}  // namespace varve::version
