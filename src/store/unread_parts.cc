// SPDX-License-Identifier: Apache-2.0
#include "store/unread_parts.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/system_error.h"

namespace varve::store {

void UnreadParts::add(std::size_t begin, std::size_t end, Error error) {
  VARVE_ASSERT(begin <= end && (parts_.empty() || parts_.back().end <= begin));
  if (begin == end) return;
  parts_.push_back({begin, end, std::move(error)});
}

void UnreadParts::add(std::size_t offset, const UnreadParts& other) {
  for (const Part& part : other.parts_) add(offset + part.begin, offset + part.end, part.error);
}

const Error* UnreadParts::find(std::size_t begin, std::size_t end) const {
  const auto part = std::ranges::find_if(
      parts_, [&](const Part& one) { return one.begin < end && one.end > begin; });
  return part == parts_.end() ? nullptr : &part->error;
}

UnreadParts UnreadParts::within(std::size_t begin, std::size_t end) const {
  UnreadParts inner;
  for (const Part& part : parts_) {
    if (part.begin >= end || part.end <= begin) continue;
    inner.add(std::max(part.begin, begin) - begin, std::min(part.end, end) - begin, part.error);
  }
  return inner;
}

Result<UnreadParts> read_around(OpenSegment& file, std::uint64_t offset, std::span<std::byte> out,
                                std::size_t piece_bytes, const std::function<Error()>& end_error) {
  UnreadParts unread;
  const auto whole = file.read_at(offset, out);
  if (whole) {
    if (*whole < out.size()) unread.add(*whole, out.size(), end_error());
    return unread;
  }
  if (!base::is_damage(whole.error())) return whole.error();
  for (std::size_t at = 0; at < out.size();) {
    const auto before = static_cast<std::size_t>((offset + at) % piece_bytes);
    const std::size_t n = std::min(out.size() - at, piece_bytes - before);
    const auto got = file.read_at(offset + at, out.subspan(at, n));
    if (!got && !base::is_damage(got.error())) return got.error();
    if (got && *got < n) {
      unread.add(at + *got, out.size(), end_error());
      return unread;
    }
    if (!got) unread.add(at, at + n, got.error());
    at += n;
  }
  return unread;
}

}  // namespace varve::store
