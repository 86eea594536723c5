// SPDX-License-Identifier: Apache-2.0
#include "layout/chunk_mover.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "catalog/birth_table.h"
#include "catalog/layout_records.h"
#include "format/prefix_cache.h"
#include "layout/group_packer.h"
#include "layout/window.h"

namespace varve::layout {

namespace {
constexpr std::size_t kReadBytesMax = 1U << 20;
// 1 MiB. Frames are read in order, and the chains of a group have few frames that others need.
constexpr std::size_t kMoverPrefixesMax = 8;
constexpr std::uint64_t kGapBytesMax = 64U << 10;
constexpr std::size_t kWaitingBytesMax = 4U << 20;
}  // namespace

ChunkMover::ChunkMover(const StoreParts& store, MoveStep step)
    : store_(store),
      step_(std::move(step)),
      prefixes_(std::make_unique<format::PrefixCache>(kMoverPrefixesMax)) {
  for (const auto& run : step_.chunks) {
    for (std::uint32_t i = 0; i < run.count; ++i) ids_.push_back(run.first.plus(i));
  }
}

ChunkMover::~ChunkMover() = default;

Result<MoveOutcome> ChunkMover::run() {
  VARVE_TRY(locate());
  auto copied = copy_all();
  if (copied) copied = commit();
  if (!copied) {
    drop_written();
    return std::move(copied).error();
  }
  return std::move(outcome_);
}

Result<void> ChunkMover::locate() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(store_.catalog));
  const StoreId store = store_.chunks.id();
  std::size_t position = 0;
  for (const auto& run : step_.chunks) {
    for (std::uint32_t i = 0; i < run.count;) {
      const ChunkId id = run.first.plus(i);
      VARVE_TRY_ASSIGN(const auto found, catalog::find_location(txn, store, id));
      if (!found) return Error(ErrorCode::kStale, "a chunk that should move is missing");
      Piece piece;
      piece.record = *found;
      piece.skip = static_cast<std::uint32_t>(id.value - found->first.value);
      piece.count = std::min(found->count - piece.skip, run.count - i);
      piece.position = position;
      auto& source = sources_[found->first];
      source.record = *found;
      source.pending += piece.count;
      if (!containers_.contains(found->container)) {
        VARVE_TRY_ASSIGN(const auto record, catalog::find_container(txn, store, found->container));
        if (!record) return Error(ErrorCode::kCorrupt, "a container's record is missing");
        containers_.emplace(found->container, *record);
      }
      i += piece.count;
      position += piece.count;
      birth_bytes_[id.birth()] += found->raw_bytes * piece.count / found->count;
      pieces_.push_back(std::move(piece));
    }
  }
  VARVE_TRY_ASSIGN(const auto births,
                   catalog::births_of(txn, store, base::IdRuns::from(step_.chunks)));
  marks_ = catalog::marks_of(births);
  return locate_dropped(txn);
}

// Handles location runs without moving chunks. note_done() handles the remaining runs.
Result<void> ChunkMover::locate_dropped(const meta::Txn& txn) {
  return catalog::for_each_location_of(
      txn, store_.chunks.id(), step_.dropped,
      [&](const catalog::LocationRecord& record) -> Result<bool> {
        const auto below = [&](std::uint32_t i) {
          return step_.dropped.count_below(record.first.value + i);
        };
        if (sources_.contains(record.first)) return true;
        if (below(record.count) - below(0) != record.count) {
          return Error(ErrorCode::kStale, "a chunk that should stay is located with dropped ones");
        }
        auto& source = sources_[record.first];
        source.record = record;
        source.gives = true;
        return true;
      });
}

Result<void> ChunkMover::copy_all() {
  const bool volume = step_.role == catalog::SegmentRole::kVolume || step_.aside;
  store::ContainerWriterOptions options;
  options.store = store_.chunks.id();
  options.numbers = &store_.numbers;
  options.volume = volume;
  options.file_per_container = store_.file_per_container;
  options.segment_bytes_max = step_.segment_bytes_max;
  options.waiting_bytes_max = kWaitingBytesMax;
  options.readable = false;
  options.marks = marks_;
  // Filled on the writer's thread, read after sync() has waited for the thread.
  store::ContainerWriter writer(
      store_.store, store_.codec, *store_.compressors, options,
      [this](store::WrittenContainer one) { written_.push_back(std::move(one)); });
  if (step_.reads_ahead) announce_whole();
  if (!step_.frames.empty()) {
    packer_ = std::make_unique<GroupPacker>(writer, store_.codec, *store_.compressors, step_.frames,
                                            store_.metrics);
  }
  auto copied = copy_batches(writer);
  packer_.reset();
  if (copied) copied = writer.sync();  // O1: the data before the location records.
  segments_ = writer.segments();
  outcome_.bytes_written = writer.stored_bytes();
  return copied;
}

// Reading and writing alternate; the writer finishes the last bytes during the next read.
Result<void> ChunkMover::copy_batches(store::ContainerWriter& writer) {
  std::vector<Piece> batch;
  std::uint64_t bytes = 0;
  std::uint32_t chunks = 0;
  const auto copy = [&]() -> Result<void> {
    chunks_.assign(chunks, {});
    bytes_used_ = 0;
    // Chunks differ in length, so the sum is an estimate; unused memory is never touched.
    reserve(std::min<std::uint64_t>(bytes + bytes / 4,
                                    std::uint64_t{chunks} * format::kFrameRawBytesMax));
    VARVE_TRY(read_batch(batch));
    VARVE_TRY(write_batch(writer));
    position_ += chunks;
    batch.clear();
    bytes = 0;
    chunks = 0;
    return {};
  };
  for (auto piece : pieces_) {
    // No chunk is empty, but a damaged record may say so.
    const auto average = std::max<std::uint64_t>(piece.record.raw_bytes / piece.record.count, 1);
    while (piece.count != 0) {
      const std::uint64_t room = (step_.batch_bytes_max - bytes) / average;
      Piece part = piece;
      part.count = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(room, 1, piece.count));
      batch.push_back(part);
      bytes += part.count * average;
      chunks += part.count;
      piece.skip += part.count;
      piece.position += part.count;
      piece.count -= part.count;
      if (bytes + average > step_.batch_bytes_max) VARVE_TRY(copy());
    }
  }
  return batch.empty() ? Result<void>() : copy();
}

void ChunkMover::reserve(std::size_t bytes) {
  if (bytes_ && bytes <= bytes_->size()) return;
  base::AlignedBuffer larger(std::max(bytes, bytes_ ? bytes_->size() * 2 : 0));
  if (bytes_) std::memcpy(larger.data(), bytes_->data(), bytes_used_);
  bytes_ = std::move(larger);
}

Result<void> ChunkMover::read_batch(Pieces batch) {
  // By place on the disk, then in the order of the chunk table.
  std::vector<Piece> sorted(batch.begin(), batch.end());
  const auto place = [this](const Piece& piece) {
    const auto& container = containers_.at(piece.record.container);
    return std::tuple(container.segment, container.offset, piece.record.index, piece.skip);
  };
  std::sort(sorted.begin(), sorted.end(),
            [&](const Piece& a, const Piece& b) { return place(a) < place(b); });
  std::size_t ahead = 0;  // Requested pieces.
  for (std::size_t p = 0; p < sorted.size();) {
    const std::size_t first = p;
    if (step_.reads_ahead && p == ahead) ahead += read_ahead(Pieces(sorted).subspan(p));
    const ContainerNumber container = sorted[first].record.container;
    while (p < sorted.size() && sorted[p].record.container == container) ++p;
    VARVE_TRY(read_container(containers_.at(container), Pieces(sorted).subspan(first, p - first)));
  }
  return {};
}

Result<void> ChunkMover::read_container(const format::ContainerRecord& record, Pieces pieces) {
  auto& reader = store_.chunks.reader();
  const auto ahead = headers_.find(record.number);
  const auto header = ahead != headers_.end() ? Result(std::move(ahead->second))
                                              : reader.read_header(store_.chunks.id(), record);
  outcome_.bytes_read += record.header_bytes;
  // An unreachable distant store is no damage, and every further read would wait as long.
  if (!header && header.error().code() == ErrorCode::kUnavailable) return header.error();
  if (!header) {
    store_.chunks.note_damage(record.number, header.error());
    store_.chunks.log_damage(record.number, header.error());
    ++outcome_.damaged_containers;
    for (const auto& piece : pieces) {
      outcome_.damaged.push_back({piece.record.first.plus(piece.skip), piece.count});
      note_done(sources_.at(piece.record.first), piece.count);
    }
    return {};
  }
  for (const auto& piece : pieces) {
    const auto& at = piece.record;
    const std::uint64_t end = std::uint64_t{at.index} + at.count;
    std::uint64_t raw = 0;
    for (std::uint64_t i = at.index; i < std::min<std::uint64_t>(end, header->chunks.size()); ++i) {
      raw += header->chunks[i].raw_bytes;
    }
    if (end > header->chunks.size() || header->chunks[at.index].id != at.first ||
        header->chunks[end - 1].id != at.first.plus(at.count - 1) || raw != at.raw_bytes) {
      return Error(ErrorCode::kCorrupt,
                   "a location does not fit " + reader.describe(record) + "; run `varve check`");
    }
  }
  VARVE_TRY(read_frames(record, *header, pieces));
  note_read(*header, pieces);
  return {};
}

// Reads the frames with wanted chunks, neighbours together, and copies the chunks out.
Result<void> ChunkMover::read_frames(const format::ContainerRecord& record,
                                     const format::ContainerHeader& header, Pieces pieces) {
  std::map<std::uint32_t, std::size_t> position_of;  // Index in the chunk table -> in the batch.
  std::set<std::uint32_t> frames;
  for (const auto& piece : pieces) {
    for (std::uint32_t i = 0; i < piece.count; ++i) {
      const std::uint32_t index = piece.record.index + piece.skip + i;
      position_of[index] = piece.position - position_ + i;
      frames.insert(header.chunks[index].frame);
    }
  }
  std::vector<std::byte> stored;
  std::vector<std::byte> raw;
  bool damage = false;
  for (auto it = frames.begin(); it != frames.end();) {
    // A prefix may lie before the frames already taken.
    std::uint64_t from = format::extent_begin(header.frames[*it]);
    auto end = it;
    std::uint64_t to = from;
    while (end != frames.end()) {
      const auto& frame = header.frames[*end];
      const std::uint64_t frame_end = std::uint64_t{frame.offset} + frame.stored_bytes;
      const auto begin = std::min<std::uint64_t>(from, format::extent_begin(frame));
      if (end != it && (frame.offset > to + kGapBytesMax || frame_end - begin > kReadBytesMax)) {
        break;
      }
      from = begin;
      to = frame_end;
      ++end;
    }
    stored.resize(to - from);
    const auto unread =
        store_.chunks.reader().read_around(record, static_cast<std::uint32_t>(from), stored);
    if (!unread && unread.error().code() == ErrorCode::kUnavailable) return unread.error();
    outcome_.bytes_read += stored.size();
    for (; it != end; ++it) {
      const auto& frame = header.frames[*it];
      raw.resize(frame.raw_bytes);
      const auto decoded = [&]() -> Result<void> {
        if (!unread) return unread.error();
        const auto at = format::extent_begin(frame) - from;
        const auto bytes = format::extent_bytes(frame);
        if (const Error* const error = unread->find(at, at + bytes)) return *error;
        VARVE_TRY(format::decode_frame(store_.codec, header, *it,
                                       std::span(stored).subspan(at, bytes), raw, *prefixes_));
        return {};
      }();
      if (!decoded) {
        store_.chunks.note_damage(header, *it, decoded.error());
        if (!damage) store_.chunks.log_damage(record.number, decoded.error());
        damage = true;
      }
      for (std::uint32_t i = 0; i < frame.chunk_count; ++i) {
        const auto wanted = position_of.find(frame.first_chunk + i);
        if (wanted == position_of.end()) continue;
        const auto& entry = header.chunks[frame.first_chunk + i];
        if (!decoded) {
          outcome_.damaged.push_back({entry.id, 1});
          continue;
        }
        auto& chunk = chunks_[wanted->second];
        chunk.fingerprint = entry.fingerprint;
        chunk.raw_bytes = entry.raw_bytes;
        chunk.offset = bytes_used_;
        chunk.present = true;
        reserve(bytes_used_ + entry.raw_bytes);
        std::memcpy(bytes_->data() + bytes_used_, raw.data() + entry.frame_offset, entry.raw_bytes);
        bytes_used_ += entry.raw_bytes;
      }
    }
  }
  if (damage) ++outcome_.damaged_containers;
  return {};
}

// Records the chunks that leave their location records.
void ChunkMover::note_read(const format::ContainerHeader& header, Pieces pieces) {
  for (const auto& piece : pieces) {
    auto& source = sources_.at(piece.record.first);
    const auto& at = source.record;
    if (source.moves.empty()) {
      source.moves.resize(at.count);
      source.raw_bytes.reserve(at.count);
      for (std::uint32_t i = 0; i < at.count; ++i) {
        source.raw_bytes.push_back(header.chunks[at.index + i].raw_bytes);
      }
    }
    for (std::uint32_t i = 0; i < piece.count; ++i) {
      const bool present = chunks_[piece.position - position_ + i].present;
      source.moves[piece.skip + i] = present;
      source.gives = source.gives || present;
    }
    note_done(source, piece.count);
  }
}

// Notes the chunks of the record that stay in place, once all chunks are known: chunks outside the
// step, and unreadable chunks.
void ChunkMover::note_done(Source& source, std::uint32_t chunks) const {
  source.pending -= chunks;
  if (source.pending != 0 || !source.gives) return;
  const auto& at = source.record;
  bool stays = false;  // The chunk before.
  for (std::uint32_t i = 0; i < at.count; ++i) {
    const bool stayed =
        std::exchange(stays, !source.moves[i] && !step_.dropped.contains(at.first.plus(i)));
    if (!stays) continue;
    if (!stayed) source.rest.push_back({at.first.plus(i), 0, 0, at.container, at.index + i});
    ++source.rest.back().count;
    source.rest.back().raw_bytes += source.raw_bytes[i];
  }
  source.moves = {};
  source.raw_bytes = {};
}

Result<void> ChunkMover::write_batch(store::ContainerWriter& writer) {
  const bool volume = step_.role == catalog::SegmentRole::kVolume || step_.aside;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const auto& chunk = chunks_[i];
    const ChunkId id = ids_[position_ + i];
    if (packer_) {
      VARVE_TRY(chunk.present ? packer_->add(id, chunk.fingerprint,
                                             bytes_->span().subspan(chunk.offset, chunk.raw_bytes))
                              : packer_->skip());
      continue;
    }
    if (!chunk.present) continue;
    if (volume && ends_container(id.birth())) {
      VARVE_TRY(writer.flush());
      container_bytes_ = 0;
    }
    birth_ = id.birth();
    container_bytes_ += chunk.raw_bytes;
    VARVE_TRY(writer.append(id, chunk.fingerprint,
                            bytes_->span().subspan(chunk.offset, chunk.raw_bytes)));
  }
  return {};
}

// A category of some size has separate containers, so that a deletion can cut the category off.
// Small categories share a container: otherwise a file would have a container for each birth.
bool ChunkMover::ends_container(VersionNumber birth) const {
  if (!birth_ || *birth_ == birth) return false;
  return std::max({container_bytes_, birth_bytes_.at(*birth_), birth_bytes_.at(birth)}) >=
         step_.shared_bytes_max;
}

// A version opened after the step was planned may refer to more chunks than were in use then, if
// the window was made longer. The version must not refer to chunks archived as older by the step.
Result<void> ChunkMover::check_death(const meta::Txn& txn) const {
  VARVE_TRY_ASSIGN(const bool used,
                   used_after(txn, step_.series, base::IdRuns::from(step_.chunks), step_.version));
  if (used) return Error(ErrorCode::kStale, "a chunk that was to be archived is in use again");
  return {};
}

// While a volume is a volume, no further version refers to its chunks. Before, a newly opened
// version may take the volume back into the active set.
Result<void> ChunkMover::check_sources(const meta::Txn& txn) const {
  for (const auto& entry : containers_) {
    VARVE_TRY_ASSIGN(const auto file,
                     catalog::find_segment(txn, store_.chunks.id(), entry.second.segment));
    if (!file || file->active()) {
      return Error(ErrorCode::kStale, "a volume that was to be coalesced is in use again");
    }
  }
  return {};
}

Result<void> ChunkMover::commit() {
  const StoreId store = store_.chunks.id();
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(store_.catalog));
  if (step_.coalesces) {
    VARVE_TRY(check_sources(txn));
  } else if (step_.role == catalog::SegmentRole::kVolume) {
    VARVE_TRY(check_death(txn));
  }
  SegmentLedger ledger(txn, store);
  for (const auto& entry : sources_) {
    const Source& source = entry.second;
    VARVE_ASSERT(source.pending == 0);
    if (!source.gives) continue;
    VARVE_TRY_ASSIGN(const auto now, catalog::find_location(txn, store, source.record.first));
    if (!now || now->encode() != source.record.encode() || now->first != source.record.first) {
      return Error(ErrorCode::kStale, "another thread moved the chunk");
    }
    VARVE_TRY(ledger.remove(source.record, source.rest));
  }
  for (const auto& container : written_) {
    VARVE_TRY(ledger.add(container, step_.role, step_.version));
  }
  VARVE_TRY(ledger.finish());
  VARVE_TRY(ledger.apply(txn));
  VARVE_TRY(catalog::raise_counters(
      txn, store, {store_.numbers.next_container(), store_.numbers.next_segment()}));
  if (step_.at_commit) VARVE_TRY(step_.at_commit(txn));
  // After a failed commit, the commit may have happened nevertheless: the files stay. The next
  // opening of the repository removes files unknown to the catalog.
  segments_.clear();
  VARVE_TRY(txn.commit());
  outcome_.bytes_freed = ledger.freed_bytes();
  if (step_.before_freeing) step_.before_freeing();
  const auto freed = store_.chunks.free(ledger.cuts());
  // The commit stands; the next opening of the repository frees the rest.
  if (!freed) base::log(base::LogLevel::kWarning, "arranging: " + freed.error().message());
  return {};
}

void ChunkMover::drop_written() {
  std::vector<FileCut> files;
  for (const auto segment : segments_) files.push_back({segment, 0, 0});
  static_cast<void>(store_.chunks.free(files));
}

}  // namespace varve::layout
