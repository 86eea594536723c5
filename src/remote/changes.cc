// SPDX-License-Identifier: Apache-2.0
#include "remote/changes.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/coding.h"
#include "format/compression.h"
#include "meta/schema.h"
#include "meta/stored_records.h"
#include "meta/value_seal.h"
#include "remote/head.h"

namespace varve::remote {

namespace {

constexpr std::uint32_t kPartMagic = 0x44435656;  // "VVCD"
constexpr std::uint32_t kPartFormat = 1;
constexpr std::size_t kPartBytes = std::size_t{8} << 20;      // Raw bytes after which a part ends.
constexpr std::size_t kRawBytesMax = std::size_t{256} << 20;  // A value may be long.
constexpr std::size_t kHeaderBytes = 20;
constexpr int kLevel = 3;
constexpr std::size_t kObjectNameMax = 1024;
constexpr std::size_t kLeadBytesMax = 256;
constexpr std::size_t kPathMax = 400;
constexpr std::uint8_t kPut = 1;
constexpr std::uint8_t kErase = 2;

Error part_damaged() {
  return {ErrorCode::kCorrupt, "a catalog object of the object store is damaged"};
}

// Returns whether a path stays below the repository's folder.
bool is_inside(std::string_view path) {
  if (path.empty() || path.size() > kPathMax) return false;
  for (std::size_t start = 0; start <= path.size();) {
    const auto end = std::min(path.find('/', start), path.size());
    const auto name = path.substr(start, end - start);
    if (name.empty() || name == "." || name == "..") return false;
    start = end + 1;
  }
  return path.find('\0') == std::string_view::npos;
}

}  // namespace

const std::vector<const char*>& catalog_tables() {
  static const std::vector<const char*> kNames = [] {
    // The numbers are part of the format (docs/FORMAT.md §15.3): newer tables follow.
    const auto& tables = meta::catalog::kTables;
    std::vector<const char*> names(tables.begin(), tables.begin() + meta::catalog::kBirths);
    names.push_back(meta::kSealTable);
    names.insert(names.end(), tables.begin() + meta::catalog::kBirths, tables.end());
    return names;
  }();
  return kNames;
}

void ChangeWriter::add(const Change& change) {
  base::ByteWriter writer(raw_);
  writer.u8(change.table);
  writer.u8(change.value ? kPut : kErase);
  writer.sized_text(change.key);
  if (change.value) writer.sized_text(*change.value);
  if (raw_.size() >= kPartBytes) end_part();
}

void ChangeWriter::end_part() {
  const auto* const method = format::find_compression(static_cast<std::uint32_t>(Codec::kZstd));
  std::string packed(raw_.size(), '\0');
  const auto bytes =
      method->compress(base::as_bytes(raw_), {}, kLevel, std::as_writable_bytes(std::span(packed)));
  std::string part;
  base::ByteWriter writer(part);
  writer.u32(kPartMagic);
  writer.u32(kPartFormat);
  writer.u32(static_cast<std::uint32_t>(bytes == 0 ? Codec::kNone : Codec::kZstd));
  writer.u64(raw_.size());
  writer.text(bytes == 0 ? std::string_view(raw_) : std::string_view(packed).substr(0, bytes));
  parts_.push_back(std::move(part));
  raw_.clear();
}

std::vector<std::string> ChangeWriter::finish() {
  if (!raw_.empty()) end_part();
  return std::move(parts_);
}

Result<void> for_each_change(std::string_view part,
                             const std::function<Result<void>(const Change&)>& visit) {
  base::ByteReader header(part.substr(0, std::min(part.size(), kHeaderBytes)));
  if (header.u32() != kPartMagic) return part_damaged();
  if (header.u32() != kPartFormat) {
    return Error(ErrorCode::kUnsupported,
                 "the catalog in the object store needs a newer version of Varve");
  }
  const auto codec = header.u32();
  const auto raw_bytes = header.u64();
  if (!header.ok() || raw_bytes > kRawBytesMax) return part_damaged();
  const auto stored = part.substr(kHeaderBytes);
  const auto* const method = format::find_compression(codec);
  if (method == nullptr) return part_damaged();
  std::string unpacked;
  std::string_view raw = stored;
  if (method->decompress != nullptr) {
    // The limit keeps a forged length from allocating memory: Zstandard never compresses better.
    if (raw_bytes / 40000 > stored.size()) return part_damaged();
    unpacked.resize(raw_bytes);
    VARVE_TRY(method->decompress(base::as_bytes(stored), {},
                                 std::as_writable_bytes(std::span(unpacked))));
    raw = unpacked;
  }
  if (raw.size() != raw_bytes) return part_damaged();
  base::ByteReader reader(raw);
  while (reader.ok() && reader.left() != 0) {
    Change change;
    change.table = reader.u8();
    const auto kind = reader.u8();
    change.key = reader.sized_text(raw.size());
    if (kind == kPut) change.value = reader.sized_text(raw.size());
    const bool known = change.table < catalog_tables().size() || change.table == kObjectsTable;
    if (!reader.ok() || !known || (kind != kPut && kind != kErase) || change.key.empty()) {
      return part_damaged();
    }
    VARVE_TRY(visit(change));
  }
  return reader.done() ? Result<void>() : part_damaged();
}

Result<std::uint64_t> compare_catalogs(const meta::Txn& before, const meta::Txn& after,
                                       ChangeWriter& changes) {
  std::uint64_t records = 0;
  const auto& tables = catalog_tables();
  for (std::uint8_t table = 0; table < tables.size(); ++table) {
    VARVE_TRY_ASSIGN(auto old_cursor, meta::StoredCursor::open(before, tables[table]));
    VARVE_TRY_ASSIGN(auto new_cursor, meta::StoredCursor::open(after, tables[table]));
    VARVE_TRY_ASSIGN(auto was, old_cursor.next());
    VARVE_TRY_ASSIGN(auto is, new_cursor.next());
    for (; was || is; ++records) {
      const int order = !was ? 1 : !is ? -1 : was->key.compare(is->key);
      if (order < 0) changes.add({table, was->key, std::nullopt});
      if (order > 0 || (order == 0 && was->value != is->value)) {
        changes.add({table, is->key, is->value});
      }
      if (order <= 0) {
        VARVE_TRY_ASSIGN(was, old_cursor.next());
      }
      if (order >= 0) {
        VARVE_TRY_ASSIGN(is, new_cursor.next());
      }
    }
  }
  return records;
}

Result<void> compare_record(const meta::Txn& before, const meta::Txn& after, std::uint8_t table,
                            std::string_view key, ChangeWriter& changes) {
  const auto* const name = catalog_tables()[table];
  VARVE_TRY_ASSIGN(const auto was, meta::find_stored(before, name, key));
  VARVE_TRY_ASSIGN(const auto is, meta::find_stored(after, name, key));
  if (was != is) changes.add({table, key, is});
  return {};
}

Result<std::uint64_t> write_catalog(const meta::Txn& catalog, ChangeWriter& changes) {
  std::uint64_t records = 0;
  const auto& tables = catalog_tables();
  for (std::uint8_t table = 0; table < tables.size(); ++table) {
    VARVE_TRY_ASSIGN(auto cursor, meta::StoredCursor::open(catalog, tables[table]));
    VARVE_TRY_ASSIGN(auto is, cursor.next());
    for (; is; ++records) {
      changes.add({table, is->key, is->value});
      VARVE_TRY_ASSIGN(is, cursor.next());
    }
  }
  return records;
}

std::string extent_key(const std::string& path, std::uint64_t offset) {
  return path + '\0' + base::be64(offset);
}

std::string encode_extent(const Extent& extent) {
  std::string out;
  base::ByteWriter writer(out);
  writer.sized_text(extent.object);
  writer.varint(extent.bytes);
  writer.varint(extent.object_bytes);
  writer.u64(extent.checksum);
  writer.u64(extent.mark);
  if (!extent.lead.empty()) writer.sized_text(extent.lead);
  return out;
}

namespace {

// Adds the names of an extent's object and of its copy.
void add_names(std::string_view path, const Extent& extent, std::set<std::string>& names) {
  if (extent.object.empty()) return;
  names.insert(extent.object);
  if (has_copy(path, extent)) names.insert(copy_name(extent.object));
}

Error gap_in(const std::string& path) {
  return {ErrorCode::kCorrupt, "the map of objects has a gap in " + path};
}

// Decodes the path and the offset.
Result<ExtentRecord> decode_extent_key(std::string_view key) {
  constexpr std::size_t kTail = 9;
  if (key.size() <= kTail || key[key.size() - kTail] != '\0') return part_damaged();
  ExtentRecord record;
  record.path = key.substr(0, key.size() - kTail);
  record.offset = base::load_be64(key.substr(key.size() - kTail + 1));
  return is_inside(record.path) ? Result<ExtentRecord>(std::move(record)) : part_damaged();
}

}  // namespace

Result<ExtentRecord> decode_extent(std::string_view key, std::string_view value) {
  VARVE_TRY_ASSIGN(auto record, decode_extent_key(key));
  base::ByteReader reader(value);
  record.extent.object = reader.sized_text(kObjectNameMax);
  record.extent.bytes = reader.varint();
  record.extent.object_bytes = reader.varint();
  record.extent.checksum = reader.u64();
  record.extent.mark = reader.u64();
  const bool has_lead = reader.ok() && !reader.done();
  if (has_lead) record.extent.lead = reader.sized_text(kLeadBytesMax);
  // A file's length is a number of 63 bits, so that sums of extents cannot overflow.
  constexpr std::uint64_t kFileBytesMax = std::numeric_limits<std::int64_t>::max();
  // Readers allocate an object's bytes before they see the object.
  const bool fits = record.extent.bytes <= record.extent.object_bytes &&
                    record.extent.object_bytes <= kExtentBytesMax &&
                    record.offset <= kFileBytesMax &&
                    record.extent.bytes <= kFileBytesMax - record.offset;
  // A part of labels is used as a whole.
  const bool leads =
      !has_lead || (!record.extent.lead.empty() &&
                    record.extent.lead.size() + record.extent.bytes == record.extent.object_bytes);
  if (!reader.done() || !fits || !leads) return part_damaged();
  return record;
}

Result<ObjectMap> map_of(const std::map<std::string, std::string>& records) {
  ObjectMap map;
  for (const auto& [key, value] : records) {
    VARVE_TRY_ASSIGN(auto record, decode_extent(key, value));
    auto& extents = map[record.path];
    if (record.offset != bytes_of(extents)) return gap_in(record.path);
    extents.push_back(std::move(record.extent));
  }
  return map;
}

Result<MapUpdate> update_map(ObjectMap& map, const std::vector<std::string>& parts, bool replaces) {
  MapUpdate update;
  std::map<std::string, std::map<std::uint64_t, Extent>> files;  // The changed files: extents by
                                                                 // offset.
  const auto had = [&](const std::string& path, const std::vector<Extent>& extents) {
    for (const auto& extent : extents) add_names(path, extent, update.gone);
  };
  if (replaces) {
    for (const auto& [path, extents] : map) {
      update.paths.insert(path);
      had(path, extents);
    }
    map.clear();
  }
  for (const auto& part : parts) {
    VARVE_TRY(for_each_change(part, [&](const Change& change) -> Result<void> {
      if (change.table != kObjectsTable) return {};
      VARVE_TRY_ASSIGN(const auto place, decode_extent_key(change.key));
      const auto [file, is_first] = files.try_emplace(place.path);
      const auto known = map.find(place.path);
      if (is_first && known != map.end()) {
        std::uint64_t at = 0;
        for (const auto& extent : known->second) {
          file->second[at] = extent;
          at += extent.bytes;
        }
        had(known->first, known->second);
      }
      if (!change.value) {
        file->second.erase(place.offset);
        return {};
      }
      VARVE_TRY_ASSIGN(auto record, decode_extent(change.key, *change.value));
      file->second[place.offset] = std::move(record.extent);
      return {};
    }));
  }
  for (auto& [path, by_offset] : files) {
    update.paths.insert(path);
    std::vector<Extent> extents;
    std::uint64_t at = 0;
    for (auto& [offset, extent] : by_offset) {
      if (offset != at) return gap_in(path);
      at += extent.bytes;
      add_names(path, extent, update.named);
      extents.push_back(std::move(extent));
    }
    if (extents.empty()) {
      map.erase(path);
    } else {
      map[path] = std::move(extents);
    }
  }
  for (const auto& object : update.named) update.gone.erase(object);
  return update;
}

Result<ObjectMap> map_after(ObjectMap before, const std::vector<std::string>& parts,
                            bool replaces) {
  VARVE_TRY_ASSIGN(const auto update, update_map(before, parts, replaces));
  static_cast<void>(update);
  return before;
}

void compare_extents(const std::string& path, const std::vector<Extent>& before,
                     const std::vector<Extent>& after, ChangeWriter& changes) {
  std::map<std::uint64_t, const Extent*> was;
  std::uint64_t at = 0;
  for (const auto& extent : before) {
    was[at] = &extent;
    at += extent.bytes;
  }
  at = 0;
  for (const auto& extent : after) {
    const auto known = was.find(at);
    if (known == was.end() || *known->second != extent) {
      changes.add({kObjectsTable, extent_key(path, at), encode_extent(extent)});
    }
    if (known != was.end()) was.erase(known);
    at += extent.bytes;
  }
  for (const auto& [offset, extent] : was) {
    changes.add({kObjectsTable, extent_key(path, offset), std::nullopt});
  }
}

Extent whole_object(Extent extent) {
  extent.bytes = extent.object_bytes;
  extent.lead.clear();
  return extent;
}

bool has_copy(std::string_view path, const Extent& extent) {
  return extent.mark != 0 && !extent.object.empty() && !path.ends_with(".par");
}

std::uint64_t bytes_of(const std::vector<Extent>& extents) {
  std::uint64_t bytes = 0;
  for (const auto& extent : extents) bytes += extent.bytes;
  return bytes;
}

std::set<std::string> names_of(const ObjectMap& map) {
  std::set<std::string> names;
  for (const auto& [path, extents] : map) {
    for (const auto& extent : extents) add_names(path, extent, names);
  }
  return names;
}

}  // namespace varve::remote
