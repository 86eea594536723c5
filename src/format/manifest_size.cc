// SPDX-License-Identifier: Apache-2.0
#include "format/manifest_size.h"

#include <algorithm>

#include "base/assert.h"
#include "format/manifest.h"

namespace varve::format {

namespace {

std::uint32_t varint_bytes(std::uint64_t value) {
  std::uint32_t bytes = 1;
  while (value >= 0x80) {
    value >>= 7;
    ++bytes;
  }
  return bytes;
}

std::uint64_t file_bytes(std::uint64_t pieces, std::uint64_t blocks) {
  return kManifestHeaderBytes + pieces + blocks * kManifestBlockHeaderBytes;
}

}  // namespace

void ManifestSize::add(std::uint32_t group, std::size_t key_bytes, std::size_t value_bytes) {
  VARVE_ASSERT(starts_.empty());
  const std::size_t first = pieces_.size();
  const std::size_t room = kManifestBlockRawMax - kManifestPieceOverhead - key_bytes;
  for (; value_bytes > room; value_bytes -= room) add_piece(key_bytes, room);
  add_piece(key_bytes, value_bytes);
  if (group == 0) return;
  VARVE_ASSERT(first != 0);
  auto& range = groups_.try_emplace(group, Group{first, first}).first->second;
  VARVE_ASSERT(range.end == first);
  range.end = pieces_.size();
}

ManifestSize::Piece ManifestSize::piece_of(std::size_t key_bytes, std::size_t value_bytes) {
  const auto bound = static_cast<std::uint32_t>(kManifestPieceOverhead + key_bytes + value_bytes);
  const auto bytes = static_cast<std::uint32_t>(1 + varint_bytes(key_bytes) + key_bytes +
                                                varint_bytes(value_bytes) + value_bytes);
  return {bytes, bound};
}

void ManifestSize::add_piece(std::size_t key_bytes, std::size_t value_bytes) {
  pieces_.push_back(piece_of(key_bytes, value_bytes));
}

std::uint64_t ManifestSize::with_tail(Blocks blocks, const ManifestTail& tail) {
  const auto piece = piece_of(tail.key_bytes, 0);
  blocks.bytes += tail.records * piece.bytes;
  for (auto left = tail.records; left != 0;) {
    if (blocks.count == 0 || blocks.filled + piece.bound > kManifestBlockRawMax) {
      ++blocks.count;
      blocks.filled = 0;
    }
    const auto fit = (kManifestBlockRawMax - piece.bound - blocks.filled) / piece.bytes + 1;
    const auto taken = std::min<std::uint64_t>(left, fit);
    blocks.filled += taken * piece.bytes;
    left -= taken;
  }
  return file_bytes(blocks.bytes, blocks.count);
}

std::size_t ManifestSize::fill(std::size_t at, std::uint64_t filled) const {
  while (at < pieces_.size() && filled + pieces_[at].bound <= kManifestBlockRawMax) {
    filled += pieces_[at].bytes;
    ++at;
  }
  return at;
}

void ManifestSize::finish() {
  if (!starts_.empty() || pieces_.empty()) return;
  const std::size_t n = pieces_.size();
  before_.assign(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) before_[i + 1] = before_[i] + pieces_[i].bytes;
  next_.assign(n, n);
  std::size_t end = 0;
  for (std::size_t i = 0; i < n; ++i) {
    end = fill(std::max(end, i + 1), before_[std::max(end, i + 1)] - before_[i]);
    next_[i] = end;
  }
  blocks_after_.assign(n + 1, 0);
  last_.assign(n, 0);
  for (std::size_t i = n; i-- > 0;) {
    blocks_after_[i] = blocks_after_[next_[i]] + 1;
    last_[i] = next_[i] == n ? i : last_[next_[i]];
  }
  block_of_.assign(n, 0);
  for (std::size_t i = 0; i < n; i = next_[i]) {
    for (std::size_t j = i; j < next_[i]; ++j) {
      block_of_[j] = static_cast<std::uint32_t>(starts_.size());
    }
    starts_.push_back(i);
  }
}

std::uint64_t ManifestSize::bytes(const ManifestTail& tail) {
  finish();
  if (pieces_.empty()) return with_tail({}, tail);
  return with_tail({before_.back(), starts_.size(), before_.back() - before_[starts_.back()]},
                   tail);
}

std::uint64_t ManifestSize::bytes_without(std::uint32_t group, const ManifestTail& tail) {
  finish();
  const auto found = groups_.find(group);
  if (found == groups_.end()) return bytes(tail);
  const auto [first, end] = found->second;
  // The pieces up to `first` stay in place. The pieces after the group follow in the last block.
  const std::uint32_t block = block_of_[first - 1];
  const std::size_t start = starts_[block];
  const std::uint64_t filled = before_[first] - before_[start];
  // The pieces after the group in the same block still fit; only later pieces need a search.
  std::size_t from = std::max(end, next_[start]);
  const std::uint64_t moved = before_[from] - before_[end];
  from = fill(from, filled + moved);
  const bool ends_here = from == pieces_.size();
  const auto in_last = before_.back() - before_[ends_here ? end : last_[from]];
  return with_tail(
      {before_.back() - (before_[end] - before_[first]),
       block + std::uint64_t{1} + blocks_after_[from], in_last + (ends_here ? filled : 0)},
      tail);
}

}  // namespace varve::format
