// SPDX-License-Identifier: Apache-2.0
#include "store/segment_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/coding.h"

namespace varve::store {

namespace {
constexpr std::uint64_t kSegmentsOfARun = 128;
constexpr std::uint64_t kReplicatedSegmentsOfARun = 8;
constexpr std::uint64_t kSegmentsOfAnArrangedSet = 2048;
// Size of the pieces around an unreadable place: the smallest unit lost by a disk. An object store
// loses whole objects, and has a long latency per request.
constexpr std::size_t kPieceBytes = kBlockBytes;
constexpr std::size_t kDistantPieceBytes = 128U << 10;
}  // namespace

Error NumberSource::no_number_left(std::string_view what) {
  return {ErrorCode::kTooLarge,
          fmt::format("no number is left for another {}; run `varve check`", what)};
}

std::uint64_t SegmentStore::segment_bytes(std::uint64_t run_bytes) const {
  return segment_bytes_for(run_bytes);
}

std::uint64_t segment_bytes_for(std::uint64_t run_bytes) {
  return std::clamp(run_bytes / kSegmentsOfARun, kSegmentBytesMin, kSegmentBytesMax);
}

std::uint64_t replicated_segment_bytes_for(std::uint64_t run_bytes) {
  const auto bytes = std::clamp(run_bytes / kReplicatedSegmentsOfARun, kReplicatedSegmentBytesMin,
                                kReplicatedSegmentBytesMax);
  return std::max(bytes, segment_bytes_for(run_bytes));
}

std::uint64_t arranged_segment_bytes_for(std::uint64_t active_bytes) {
  return std::clamp(active_bytes / kSegmentsOfAnArrangedSet, kArrangedSegmentBytesMin,
                    kSegmentBytesMax);
}

std::string segment_name(SegmentNumber segment) {
  return is_volume(segment) ? fmt::format("{:08x}.vol", without_kind(segment))
                            : fmt::format("{:08x}.seg", segment);
}

std::string segment_path(SegmentNumber segment) {
  return (is_volume(segment) ? "volumes/" : "active/") + segment_name(segment);
}

std::string SegmentReader::describe(const format::ContainerRecord& record) const {
  return fmt::format("{} container {} at offset {}", store_.describe(record.segment), record.number,
                     record.offset);
}

Result<std::shared_ptr<OpenSegment>> SegmentReader::file(SegmentNumber segment, ReadMode mode) {
  const OpenFiles::Key key{&store_, segment, mode};
  std::uint64_t state = 0;
  if (auto known = files_.find(key, state)) return known;
  // Opens without a lock: several threads may open different files at once.
  auto opened = store_.open(segment, mode);
  if (!opened) {
    if (opened.error().code() != ErrorCode::kNotFound) return std::move(opened).error();
    return Error(ErrorCode::kCorrupt, store_.describe(segment) + " is missing");
  }
  return files_.add(key, state, std::move(*opened));
}

void SegmentReader::forget(SegmentNumber segment) { files_.forget(store_, segment); }

Result<format::ContainerHeader> SegmentReader::read_header(StoreId store_id,
                                                           const format::ContainerRecord& record) {
  std::vector<std::byte> bytes(record.header_bytes);
  const auto read = [&]() -> Result<format::ContainerHeader> {
    VARVE_TRY_ASSIGN(const auto segment, file(record.segment));
    VARVE_TRY_ASSIGN(const std::size_t got, segment->read_at(record.offset, bytes));
    return decode_header(store_id, record, bytes, got);
  };
  auto header = read();
  if (!header && header.error().code() == ErrorCode::kCorrupt && drop(record)) header = read();
  return header;
}

void SegmentReader::read_header_later(
    StoreId store_id, const format::ContainerRecord& record,
    const std::function<void(Result<format::ContainerHeader>)>& done) {
  auto segment = file(record.segment);
  if (!segment) return done(std::move(segment).error());
  const auto bytes = std::make_shared<std::vector<std::byte>>(record.header_bytes);
  store_.read_many({{std::move(*segment), record.offset, *bytes}},
                   [this, store_id, record, bytes, done](std::size_t, Result<std::size_t> got) {
                     if (!got) return done(std::move(got).error());
                     done(decode_header(store_id, record, *bytes, *got));
                   });
}

Result<format::ContainerHeader> SegmentReader::decode_header(StoreId store_id,
                                                             const format::ContainerRecord& record,
                                                             std::span<const std::byte> bytes,
                                                             std::size_t got) const {
  if (got != bytes.size()) {
    return Error(ErrorCode::kCorrupt, describe(record) + ": the file ends inside the header");
  }
  auto header = format::decode_container_header(bytes, keys_);
  if (!header) return std::move(header).error().with_context(describe(record));
  if (header->store != store_id || !record.may_be(*header)) {
    return Error(ErrorCode::kCorrupt, describe(record) + ": another container is here");
  }
  return header;
}

Result<void> SegmentReader::read_data(const format::ContainerRecord& record, std::uint32_t offset,
                                      std::span<std::byte> out) {
  VARVE_TRY(check_range(record, offset, out.size()));
  VARVE_TRY_ASSIGN(const auto segment, file(record.segment));
  VARVE_TRY_ASSIGN(const std::size_t got,
                   segment->read_at(record.offset + record.header_bytes + offset, out));
  if (got != out.size()) return ends_early(record);
  return {};
}

Result<std::span<const std::byte>> SegmentReader::read_once(const format::ContainerRecord& record,
                                                            std::uint32_t offset, std::size_t bytes,
                                                            std::span<std::byte> room) {
  VARVE_TRY_ASSIGN(const auto cached, file(record.segment));
  if (!cached->is_cached(record.offset + record.header_bytes + offset, bytes)) {
    return read_direct(record, offset, bytes, room);
  }
  VARVE_TRY(read_data(record, offset, room.first(bytes)));
  return std::span<const std::byte>(room.first(bytes));
}

Result<SegmentReader::Blocks> SegmentReader::blocks_of(const format::ContainerRecord& record,
                                                       std::uint32_t offset, std::size_t bytes,
                                                       std::span<std::byte> room) {
  VARVE_ASSERT(room.size() >= room_for(bytes));
  Blocks blocks;
  VARVE_TRY_ASSIGN(blocks.file, file(record.segment, ReadMode::kDirect));
  const std::uint64_t begin = record.offset + record.header_bytes + offset;
  blocks.before = begin % kBlockBytes;
  blocks.begin = begin - blocks.before;
  blocks.bytes = whole_blocks(blocks.before + bytes);
  return blocks;
}

Result<std::span<const std::byte>> SegmentReader::read_direct(const format::ContainerRecord& record,
                                                              std::uint32_t offset,
                                                              std::size_t bytes,
                                                              std::span<std::byte> room) {
  VARVE_TRY(check_range(record, offset, bytes));
  VARVE_TRY_ASSIGN(const auto blocks, blocks_of(record, offset, bytes, room));
  VARVE_TRY_ASSIGN(const std::size_t got,
                   blocks.file->read_at(blocks.begin, room.first(blocks.bytes)));
  if (got < blocks.before + bytes) return ends_early(record);
  return std::span<const std::byte>(room).subspan(blocks.before, bytes);
}

Result<UnreadParts> SegmentReader::read_pieces(const format::ContainerRecord& record,
                                               OpenSegment& from, std::uint64_t offset,
                                               std::span<std::byte> out) const {
  const auto piece_bytes = store_.answers_later() ? kDistantPieceBytes : kPieceBytes;
  return store::read_around(from, offset, out, piece_bytes, [&] { return ends_early(record); });
}

Result<UnreadParts> SegmentReader::read_around(const format::ContainerRecord& record,
                                               std::uint32_t offset, std::span<std::byte> out) {
  VARVE_TRY(check_range(record, offset, out.size()));
  VARVE_TRY_ASSIGN(const auto from, file(record.segment));
  return read_pieces(record, *from, record.offset + record.header_bytes + offset, out);
}

Result<DirectRead> SegmentReader::read_direct_around(const format::ContainerRecord& record,
                                                     std::uint32_t offset, std::size_t bytes,
                                                     std::span<std::byte> room) {
  const auto end = record.end() - record.offset - record.header_bytes;  // With the padding.
  if (offset > end || bytes > end - offset) return check_range(record, offset, bytes).error();
  VARVE_TRY_ASSIGN(const auto blocks, blocks_of(record, offset, bytes, room));
  VARVE_TRY_ASSIGN(const auto unread,
                   read_pieces(record, *blocks.file, blocks.begin, room.first(blocks.bytes)));
  return DirectRead{std::span<const std::byte>(room).subspan(blocks.before, bytes),
                    unread.within(blocks.before, blocks.before + bytes)};
}

void SegmentReader::read_many(const std::vector<ContainerRead>& reads,
                              const ContainerCompletion& done) {
  struct Wanted {
    std::size_t position = 0;
    std::size_t before = 0;
    ContainerRead read;
  };
  std::vector<Wanted> wanted;
  std::vector<RangeRead> ranges;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const auto& read = reads[i];
    const auto checked = check_range(read.record, read.offset, read.bytes);
    auto blocks = checked ? blocks_of(read.record, read.offset, read.bytes, read.room)
                          : Result<Blocks>(checked.error());
    if (!blocks) {
      done(i, std::move(blocks).error());
      continue;
    }
    ranges.push_back(
        {std::move(blocks->file), blocks->begin, read.room.first(blocks->bytes), read.lent});
    wanted.push_back({i, blocks->before, read});
  }
  if (ranges.empty()) return;
  store_.read_many(std::move(ranges), [this, done, wanted = std::move(wanted)](
                                          std::size_t at, Result<std::size_t> got) {
    const auto& [position, before, read] = wanted[at];
    if (!got) {
      done(position, std::move(got).error());
    } else if (*got < before + read.bytes) {
      done(position, ends_early(read.record));
    } else {
      const bool is_lent = read.lent != nullptr && read.lent->holder != nullptr;
      const auto got_bytes = is_lent ? read.lent->bytes : std::span<const std::byte>(read.room);
      done(position, got_bytes.subspan(before, read.bytes));
    }
  });
}

Result<void> SegmentReader::check_range(const format::ContainerRecord& record, std::uint32_t offset,
                                        std::size_t bytes) const {
  // Readers of a sealed container also read the padding.
  const std::uint32_t end =
      record.sealed ? record.total_bytes - record.header_bytes : record.data_bytes;
  if (offset > end || bytes > end - offset) {
    return Error(ErrorCode::kCorrupt, describe(record) + ": a frame lies outside it");
  }
  return {};
}

Error SegmentReader::ends_early(const format::ContainerRecord& record) const {
  return Error(ErrorCode::kCorrupt, describe(record) + ": the file ends inside the data");
}

void SegmentReader::will_read_header(const format::ContainerRecord& record) {
  // The later read of the header reports faults of the file.
  if (const auto from = file(record.segment)) {
    (*from)->will_read(record.offset, record.header_bytes);
  }
}

void SegmentReader::will_read_all(const format::ContainerRecord& record) {
  if (const auto from = file(record.segment)) {
    (*from)->will_read(record.offset, record.end() - record.offset);
  }
}

void SegmentReader::will_read_data(const format::ContainerRecord& record, std::uint32_t offset,
                                   std::size_t bytes) {
  if (!check_range(record, offset, bytes)) return;
  if (const auto from = file(record.segment)) {
    (*from)->will_read(record.offset + record.header_bytes + offset, bytes);
  }
}

bool SegmentReader::drop(const format::ContainerRecord& record) {
  // Two readers may meet one altered answer; a permanently damaged container gives no better
  // answer.
  constexpr unsigned kDropsMax = 4;
  constexpr std::chrono::seconds kWhile{30};
  constexpr std::size_t kKnownMax = 1024;
  {
    const std::lock_guard lock(drops_mutex_);
    if (drops_.size() >= kKnownMax) drops_.clear();
    auto& drops = drops_[{record.segment, record.offset}];
    const auto now = std::chrono::steady_clock::now();
    if (now - drops.since > kWhile) drops = {now, 0};
    if (++drops.count > kDropsMax) return false;
  }
  const auto from = file(record.segment);
  return from && (*from)->drop(record.offset, record.end() - record.offset);
}

Result<std::vector<std::byte>> SegmentReader::read_padding(const format::ContainerRecord& record) {
  const std::uint64_t begin = record.offset + record.header_bytes + record.data_bytes;
  std::vector<std::byte> bytes(record.end() - begin);
  if (bytes.empty()) return bytes;
  VARVE_TRY_ASSIGN(const auto segment, file(record.segment));
  VARVE_TRY_ASSIGN(const std::size_t got, segment->read_at(begin, bytes));
  if (got != bytes.size()) {
    return Error(ErrorCode::kCorrupt, describe(record) + ": the file ends inside the padding");
  }
  return bytes;
}

}  // namespace varve::store
