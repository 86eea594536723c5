// SPDX-License-Identifier: Apache-2.0
// Reads manifests and labels block by block; manifest_file.cc writes them.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/coding.h"
#include "base/ids.h"
#include "base/padding.h"
#include "catalog/birth_table.h"
#include "catalog/series_catalog.h"
#include "format/recipe_decoder.h"
#include "maintain/manifest_file.h"

namespace varve::maintain {

using format::ManifestRecord;

namespace {

constexpr std::size_t kRecordBytesMax = std::size_t{1} << 30;
// A version's record contains the root with extended attributes; the remaining records are smaller.
constexpr std::size_t kSmallRecordBytesMax = std::size_t{2} << 20;

Error damaged(const std::string& path, const std::string& what) {
  return {ErrorCode::kCorrupt, path + ": " + what};
}

// Returns the size limit of a record's value.
std::size_t bytes_max(ManifestRecord what, const ManifestBounds& bounds) {
  switch (what) {
    case ManifestRecord::kNode:
      return format::kDirPageBytesMax;
    case ManifestRecord::kRecipe:
      return kRecordBytesMax;
    case ManifestRecord::kVersionChunks:
      return bounds.chunk_set_bytes;
    case ManifestRecord::kVersionLinks:
      return bounds.link_bytes;
    case ManifestRecord::kBirths:  // A birth takes less than two runs of chunks.
      return 2 * bounds.chunk_set_bytes;
    case ManifestRecord::kSetting:  // The quarantine is a set of chunks, too.
      return bounds.chunk_set_bytes;
    default:
      return kSmallRecordBytesMax;
  }
}

/// Joins pieces into records. Drops a record as soon as the record exceeds the size limit, and a
/// malformed recipe at once: compressed, both need almost no space in the file but much memory.
class RecordAssembler {
 public:
  RecordAssembler(const ManifestVisit& visit, const ManifestBounds& bounds)
      : visit_(visit), bounds_(bounds) {}

  Result<void> add(const format::ManifestPiece& piece) {
    if (!piece.later && !piece.more) {
      going_ = false;
      return visit_(piece.what, piece.key, piece.value);
    }
    if (!piece.later) {
      what_ = piece.what;
      key_ = piece.key;
      value_.clear();
      recipe_.reset();
      if (what_ == ManifestRecord::kRecipe) {
        recipe_.emplace(format::kAnyFileBytes, [](const format::RecipeRun&) {});
        decoded_ = 1;  // Skips the byte with the object's type.
      }
      going_ = !bounds_.small_records_only || bytes_max(what_, bounds_) == kSmallRecordBytesMax;
    }
    // The start of the record may be in a damaged block.
    if (!going_) return {};
    if (piece.what != what_ || piece.key != key_ ||
        value_.size() + piece.value.size() > bytes_max(what_, bounds_)) {
      return give_up();
    }
    value_.append(piece.value);
    if (recipe_) {
      const auto rest = base::as_bytes(value_).subspan(std::min(decoded_, value_.size()));
      const auto used = recipe_->take(rest, !piece.more);
      if (!used) return give_up();
      decoded_ += *used;
    }
    if (piece.more) return {};
    going_ = false;
    auto visited = visit_(what_, key_, value_);
    gap();
    return visited;
  }
  /// Returns the number of dropped records.
  [[nodiscard]] std::uint32_t faults() const { return faults_; }
  /// Records that a block is missing at the present position.
  void gap() {
    going_ = false;
    std::string().swap(value_);
  }

 private:
  Result<void> give_up() {
    ++faults_;
    gap();
    return {};
  }

  const ManifestVisit& visit_;
  const ManifestBounds& bounds_;
  std::optional<format::RecipeDecoder> recipe_;  // Decoder of the start of `value_`.
  std::size_t decoded_ = 0;                      // Bytes of `value_` already decoded.
  bool going_ = false;
  std::uint32_t faults_ = 0;
  ManifestRecord what_ = ManifestRecord::kSeries;
  std::string key_;
  std::string value_;
};

// Returns whether the catalog has no differing births under the numbers of `births`. The catalog
// forgets births without chunks, and a rebuilt catalog may lack digests. `with_pool`: also compares
// births of the pool; a catalog rebuilt without labels may have given the same numbers again.
bool has_births_of(const meta::Txn& txn, SeriesId series, const format::Births& births,
                   bool with_pool) {
  for (const auto& [number, birth] : births) {
    const auto store = catalog::store_of_birth(catalog::store_of(series), number);
    if (store == kPoolStore && !with_pool) continue;
    const auto known = catalog::find_birth(txn, store, number);
    if (!known || !*known) continue;
    const bool is_same_digest =
        !birth.digest || !(*known)->digest || birth.digest == (*known)->digest;
    if (birth.mark != (*known)->mark || !is_same_digest) return false;
  }
  return true;
}

}  // namespace

Result<ManifestRead> read_manifest_part(io::File& file, const format::FrameCodec& codec,
                                        const std::string& path, std::uint64_t start,
                                        const ManifestVisit& visit, const ManifestBounds& bounds) {
  VARVE_TRY_ASSIGN(const auto size, file.size());
  std::vector<std::byte> bytes(format::kManifestHeaderBytes);
  VARVE_TRY_ASSIGN(const auto got, file.read_at(start, bytes));
  auto header = format::decode_manifest_header(std::span(bytes).first(got));
  if (!header) return std::move(header).error().with_context(path);
  std::uint64_t offset = start + format::kManifestHeaderBytes;
  if (header->stored_bytes > size - std::min(offset, size)) {
    return damaged(path, "its length differs from its header");
  }
  ManifestRead read{*header, 0, offset + header->stored_bytes};
  RecordAssembler records(visit, bounds);
  std::vector<std::byte> raw;
  for (std::uint32_t i = 0; i < header->blocks; ++i) {
    bytes.resize(format::kManifestBlockHeaderBytes);
    VARVE_TRY_ASSIGN(const auto header_got, file.read_at(offset, bytes));
    const auto block = format::decode_manifest_block_header(std::span(bytes).first(header_got));
    offset += format::kManifestBlockHeaderBytes;
    // Labels are not compressed, so the file size limits the memory use.
    const bool strange =
        block && header->kind != format::ManifestKind::kVersion && block->codec != Codec::kNone;
    if (!block || strange || block->stored_bytes > size || offset > size - block->stored_bytes) {
      // The start of the next block is unknown.
      read.damaged_blocks += header->blocks - i + records.faults();
      return read;
    }
    bytes.resize(block->stored_bytes);
    raw.resize(block->raw_bytes);
    VARVE_TRY_ASSIGN(const auto data_got, file.read_at(offset, bytes));
    offset += block->stored_bytes;
    const auto decoded = codec.decode(format::place_of_block(*header, i), *block,
                                      std::span(bytes).first(data_got), raw);
    if (!decoded) {
      ++read.damaged_blocks;
      records.gap();
      continue;
    }
    VARVE_TRY(format::for_each_manifest_piece(
        raw, [&](const format::ManifestPiece& piece) { return records.add(piece); }));
  }
  read.damaged_blocks += records.faults();
  if (offset != read.end) return damaged(path, "its length differs from its header");
  return read;
}

Result<ManifestRead> read_manifest(io::FileSystem& files, const format::FrameCodec& codec,
                                   const std::string& path, const ManifestVisit& visit,
                                   const ManifestBounds& bounds) {
  VARVE_TRY_ASSIGN(const auto file, files.open(path, io::OpenMode::kRead));
  VARVE_TRY_ASSIGN(auto read, read_manifest_part(*file, codec, path, 0, visit, bounds));
  VARVE_TRY_ASSIGN(const auto size, file->size());
  const auto padded = base::padded_file_bytes(read.end, file->append_unit());
  if (!read.header.grows && padded != size) {
    return damaged(path, "its length differs from its header");
  }
  return read;
}

bool is_same_seal(const catalog::VersionRecord& a, const catalog::VersionRecord& b) {
  return a.state == b.state && a.sealed_at == b.sealed_at && a.entries == b.entries &&
         a.root.child == b.root.child && a.root.subtree_entries == b.root.subtree_entries;
}

bool may_be_same_version(const catalog::VersionRecord& a, const catalog::VersionRecord& b) {
  const bool both_sealed = a.state == VersionState::kSealed && b.state == VersionState::kSealed;
  return a.opened_at == b.opened_at && (!both_sealed || is_same_seal(a, b));
}

Result<ManifestState> state_of_manifest(io::FileSystem& files, const format::FrameCodec& codec,
                                        const std::string& path, const meta::Env& catalog,
                                        SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto recorded, catalog::find_version(txn, series, number));
  ManifestState state;
  state.is_unknown = !recorded;
  const bool is_compared = recorded && recorded->state == VersionState::kSealed;
  bool has_record = false;
  bool is_same = true;
  bool has_same_births = true;
  const auto note_name = [&](const auto& record) {
    if (!record) {
      state.fault = record.error().message();
    } else if (!record->name_fault.empty()) {
      state.fault = "it holds a name that is not allowed (" + record->name_fault + ")";
    }
  };
  ManifestBounds bounds;
  bounds.small_records_only = true;
  const auto read = read_manifest(
      files, codec, path,
      [&](ManifestRecord what, std::string_view, std::string_view value) {
        if (what == ManifestRecord::kSeries) note_name(catalog::decode_series(series, value));
        if (what == ManifestRecord::kVersion) {
          const auto version = catalog::decode_version(series, number, value);
          note_name(version);
          has_record = version.has_value();
          if (version) state.version_name = version->name;
          if (version && recorded) is_same = may_be_same_version(*version, *recorded);
        }
        if (what == ManifestRecord::kBirths) {
          const auto births = format::decode_births(value);
          if (!births) state.fault = births.error().message();
          if (births) has_same_births = has_births_of(txn, series, *births, is_compared);
        }
        return Result<void>();
      },
      bounds);
  if (!read) return read.error();
  if (read->header.series != series || read->header.number != number ||
      read->header.kind != format::ManifestKind::kVersion) {
    state.fault = "this is the manifest of another version";
    return state;
  }
  state.of_other_history = !is_same || !has_same_births;
  if (read->damaged_blocks != 0) {
    state.fault = fmt::format("{} damaged blocks", read->damaged_blocks);
  } else if (state.fault.empty() && !is_same) {
    state.fault = "it has another state of this version than the catalog";
  } else if (state.fault.empty() && !has_same_births) {
    state.fault = "its version belongs to another history of the repository than the catalog";
  } else if (state.fault.empty() && is_compared && !has_record) {
    state.fault = "it lacks the version's record";
  }
  if (!state.fault.empty()) return state;
  // A sealed file leaves out an end too short for a block, which a crash can leave in a file. A
  // manifest is renamed into place as a whole, so a short end is a fault.
  VARVE_TRY_ASSIGN(const auto file, files.open(path, io::OpenMode::kRead));
  VARVE_TRY_ASSIGN(const auto bytes, file->size());
  VARVE_TRY_ASSIGN(const auto stored, files.tree_bytes(path));
  if (stored != files.stored_bytes(path, bytes)) {
    state.fault = "bytes that belong to no block follow its end";
  }
  return state;
}

}  // namespace varve::maintain
