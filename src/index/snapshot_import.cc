// SPDX-License-Identifier: Apache-2.0
// Reads snapshots of layout 1, written by older versions of Varve: docs/FORMAT.md §8.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "base/checksum.h"
#include "base/coding.h"
#include "index/run_set.h"

namespace varve::index {

namespace {

constexpr std::uint32_t kMagic = 0x58495656;  // "VVIX"
constexpr std::uint32_t kLayout = 1;
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kEntryBytes = 24;
constexpr std::size_t kEntriesRead = 16384;
constexpr std::uint64_t kRunBytesMax = std::uint64_t{1} << 32;

}  // namespace

Result<base::IdRuns> scan_snapshot(
    io::File& snapshot, SeriesId series, VersionNumber version,
    const std::function<Result<void>(const Entry&, std::uint64_t entries)>& visit) {
  const Error damaged(ErrorCode::kCorrupt, "the snapshot of the index is damaged");
  VARVE_TRY_ASSIGN(const std::uint64_t size, snapshot.size());
  if (size < kSnapshotHeaderBytes + kChecksumBytes) return damaged;
  base::ChecksumStream checksum;
  std::uint64_t at = 0;
  const auto read = [&](std::uint64_t bytes) -> Result<std::string> {
    std::string text(bytes, '\0');
    VARVE_TRY_ASSIGN(
        const auto got,
        snapshot.read_at(at, std::as_writable_bytes(std::span(text.data(), text.size()))));
    if (got != bytes) return Error(ErrorCode::kCorrupt, "the snapshot of the index is truncated");
    at += bytes;
    return text;
  };
  VARVE_TRY_ASSIGN(const auto header, read(kSnapshotHeaderBytes));
  checksum.add(base::as_bytes(header));
  base::ByteReader r(header);
  const bool ours = r.u32() == kMagic && r.u32() == kLayout &&
                    r.u32() == static_cast<std::uint32_t>(series) &&
                    r.u32() == static_cast<std::uint32_t>(version);
  const std::uint64_t entries = r.u64();
  const std::uint64_t run_bytes = r.u64();
  const std::uint64_t body = size - kSnapshotHeaderBytes - kChecksumBytes;
  if (!ours || run_bytes > std::min(body, kRunBytesMax) ||
      entries != (body - run_bytes) / kEntryBytes || (body - run_bytes) % kEntryBytes != 0) {
    return damaged;
  }
  VARVE_TRY_ASSIGN(const auto runs, read(run_bytes));
  checksum.add(base::as_bytes(runs));
  VARVE_TRY_ASSIGN(auto ids, base::IdRuns::decode(runs));
  if (entries > ids.size()) return damaged;
  for (std::uint64_t done = 0; done < entries;) {
    const auto count = std::min<std::uint64_t>(kEntriesRead, entries - done);
    VARVE_TRY_ASSIGN(const auto piece, read(count * kEntryBytes));
    checksum.add(base::as_bytes(piece));
    base::ByteReader in(piece);
    for (std::uint64_t i = 0; i < count; ++i) {
      Tag tag;
      const auto bytes = in.bytes(tag.size());
      std::copy(bytes.begin(), bytes.end(), tag.begin());
      const std::uint32_t rank = in.u32();
      if (rank >= ids.size()) return damaged;
      VARVE_TRY(visit(Entry(tag, ids.select(rank)), entries));
    }
    done += count;
  }
  VARVE_TRY_ASSIGN(const auto sum, read(kChecksumBytes));
  if (base::load_le<std::uint64_t>(base::as_bytes(sum).data()) != checksum.sum()) return damaged;
  return ids;
}

}  // namespace varve::index
