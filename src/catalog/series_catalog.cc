// SPDX-License-Identifier: Apache-2.0
#include "catalog/series_catalog.h"

#include <fmt/core.h>

#include <set>

#include "base/coding.h"
#include "base/ids.h"
#include "base/time_coding.h"
#include "catalog/chunk_references.h"
#include "catalog/deletion_record.h"
#include "catalog/name_table.h"
#include "catalog/refused_record.h"
#include "catalog/series_sequences.h"
#include "catalog/series_settings.h"
#include "catalog/stored_name.h"
#include "meta/schema.h"
#include "varve/version_name.h"

namespace varve::catalog {

namespace {

// Stored form of a version's state: the two public states, and further kinds of open.
enum class StoredState : std::uint8_t {
  kOpen = 1,
  kSealed = 2,
  kBased = 3,
  kUnfinished = 4,
  kReplacing = 5
};

StoredState stored_state(const VersionRecord& record) {
  if (record.state == VersionState::kSealed) return StoredState::kSealed;
  if (record.unfinished) return StoredState::kUnfinished;
  if (record.base == VersionNumber{}) return StoredState::kOpen;
  return record.replaces ? StoredState::kReplacing : StoredState::kBased;
}

Error damaged_record(const char* what) {
  return {ErrorCode::kCorrupt, std::string("catalog: a ") + what + " record is damaged"};
}

using base::get_time;
using base::put_time;

// Returns the stored name of a record; nullopt if the record is damaged.
std::optional<StoredName> stored_series_name(std::string_view bytes) {
  base::ByteReader r(bytes);
  const auto name = r.sized_text(r.left());
  if (!r.ok()) return std::nullopt;
  return StoredName{name, check_series_name(name).has_value()};
}

std::optional<StoredName> stored_version_name(std::string_view bytes) {
  base::ByteReader r(bytes);
  const auto state = static_cast<StoredState>(r.u8());
  if (state == StoredState::kBased || state == StoredState::kReplacing) r.varint();
  const auto name = r.sized_text(r.left());
  if (!r.ok()) return std::nullopt;
  const auto public_state =
      state == StoredState::kSealed ? VersionState::kSealed : VersionState::kOpen;
  return StoredName{name, check_version_name(name, public_state).has_value()};
}

// Returns the name in a record's present value, for change_name(): an odd name if damaged.
template <typename Decode>
std::optional<StoredName> present_name(const meta::Txn& txn, meta::TableIndex table,
                                       const std::string& key, std::string& copy, Decode decode) {
  const auto value = txn.get(table, key);
  if (!value) return StoredName{};
  if (!*value) return std::nullopt;
  copy = **value;
  return decode(copy).value_or(StoredName{});
}

// Replaces a forbidden name of the record, and stores the reason in `name_fault`.
template <typename Record>
void validate_name(Record& record, std::uint32_t number, const Result<void>& allowed) {
  if (allowed) return;
  record.name_fault = allowed.error().message();
  record.name = replacement_name(number);
}

// Makes every name unique. Of several records with the same name, the first record keeps the name.
template <typename Record, typename Number>
void part_names(std::vector<Record>& records, Number number_of) {
  std::set<std::string_view> names;
  for (auto& record : records) {
    if (record.name_fault.empty() && !names.insert(record.name).second) {
      record.name_fault = "another record has the same name";
      record.name = replacement_name(number_of(record));
    }
  }
  for (auto& record : records) {
    if (record.name_fault.empty()) continue;
    while (names.contains(record.name)) record.name += '_';
    names.insert(record.name);
  }
}

}  // namespace

StoreId store_of(SeriesId series) {
  return static_cast<StoreId>(static_cast<std::uint32_t>(series));
}

SeriesSettings settings_of(const SeriesRecord& record) {
  return {record.placement, record.rewrite};
}

SeriesInfo info_of(const SeriesRecord& record) {
  return {record.id, record.name, record.created_at, record.placement, record.rewrite};
}

Result<SeriesRecord> decode_series(SeriesId id, std::string_view bytes) {
  // The store with the number 0 is the pool's store.
  if (store_of(id) == kPoolStore) return damaged_record("series");
  base::ByteReader r(bytes);
  SeriesRecord record;
  record.id = id;
  record.name = r.sized_text(r.left());
  record.created_at = get_time(r);
  const std::uint64_t next = r.varint();
  record.next_number = static_cast<std::uint32_t>(next);
  if (!r.ok() || next > 0xffffffffU) return damaged_record("series");
  auto settings = get_series_settings(r);
  if (!settings) {
    return std::move(settings).error().with_context(
        fmt::format("series {}", static_cast<std::uint32_t>(id)));
  }
  record.placement = settings->placement;
  record.rewrite = settings->rewrite;
  validate_name(record, static_cast<std::uint32_t>(id), check_series_name(record.name));
  return record;
}

Result<VersionRecord> decode_version(SeriesId series, VersionNumber number,
                                     std::string_view bytes) {
  base::ByteReader r(bytes);
  VersionRecord record;
  record.series = series;
  record.number = number;
  const std::uint8_t state = r.u8();
  const auto stored = static_cast<StoredState>(state);
  const bool replaces = stored == StoredState::kReplacing;
  const bool based = replaces || stored == StoredState::kBased;
  const std::uint64_t base = based ? r.varint() : 0;
  record.name = r.sized_text(r.left());
  record.opened_at = get_time(r);
  record.sealed_at = get_time(r);
  record.entries = r.varint();
  record.logical_bytes = r.varint();
  record.unique_bytes = r.varint();
  record.stored_bytes = r.varint();
  const auto root = r.text(r.left());
  if (!r.ok() || state < 1 || state > 5 || (based && base == 0) ||
      base >= static_cast<std::uint32_t>(number)) {
    return damaged_record("version");
  }
  record.state = stored == StoredState::kSealed ? VersionState::kSealed : VersionState::kOpen;
  record.base = static_cast<VersionNumber>(base);
  record.replaces = replaces;
  record.unfinished = stored == StoredState::kUnfinished;
  validate_name(record, static_cast<std::uint32_t>(number),
                check_version_name(record.name, record.state));
  VARVE_TRY_ASSIGN(record.root, format::decode_dir_entry(root));
  return record;
}

Result<std::vector<SeriesRecord>> list_series(const meta::Txn& txn) {
  std::vector<SeriesRecord> all;
  VARVE_TRY(meta::for_each_prefix(
      txn, meta::catalog::kSeries, "",
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (key.size() != 4) return damaged_record("series");
        VARVE_TRY_ASSIGN(auto record,
                         decode_series(static_cast<SeriesId>(base::load_be32(key)), value));
        all.push_back(std::move(record));
        return true;
      }));
  part_names(all, [](const SeriesRecord& record) { return static_cast<std::uint32_t>(record.id); });
  return all;
}

Result<std::optional<SeriesRecord>> find_series(const meta::Txn& txn, SeriesId id) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSeries, meta::series_key(id)));
  if (!value) return std::optional<SeriesRecord>();
  VARVE_TRY_ASSIGN(auto record, decode_series(id, *value));
  return std::optional(std::move(record));
}

Result<std::optional<SeriesRecord>> find_series_named(const meta::Txn& txn, std::string_view name) {
  const auto answer = find_name(txn, NameSpace::of_series(), name);
  if (answer.known) {
    if (!answer.number) return std::optional<SeriesRecord>();
    VARVE_TRY_ASSIGN(auto record, find_series(txn, static_cast<SeriesId>(*answer.number)));
    if (record && record->name == name) return record;
  }
  VARVE_TRY_ASSIGN(auto all, list_series(txn));
  for (auto& record : all) {
    if (record.name == name) return std::optional(std::move(record));
  }
  return std::optional<SeriesRecord>();
}

Result<SeriesId> last_series(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kSeries));
  VARVE_TRY_ASSIGN(const auto last, cursor.seek_at_or_before(base::be32(0xffffffffU)));
  if (!last) return SeriesId{};
  if (last->key.size() != 4) return damaged_record("series");
  return static_cast<SeriesId>(base::load_be32(last->key));
}

Result<std::uint32_t> last_version_number(const meta::Txn& txn, SeriesId series) {
  const auto prefix = meta::series_key(series);
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kVersions));
  VARVE_TRY_ASSIGN(const auto last, cursor.seek_at_or_before(prefix + base::be32(0xffffffffU)));
  if (!last || !last->key.starts_with(prefix)) return std::uint32_t{0};
  if (last->key.size() != 8) return damaged_record("version");
  return base::load_be32(last->key.substr(4));
}

Result<VersionNumber> take_version_number(const meta::Txn& txn, SeriesRecord& owner) {
  VARVE_TRY_ASSIGN(const auto last, last_version_number(txn, owner.id));
  const auto number = std::max(owner.next_number, number_after(static_cast<VersionNumber>(last)));
  // Births from kPoolBit on are births of the pool.
  if (number >= kPoolBit) return Error(ErrorCode::kTooLarge, "no number is left for a version");
  owner.next_number = number + 1;
  return static_cast<VersionNumber>(number);
}

Result<void> put_series(meta::WriteTxn& txn, const SeriesRecord& record) {
  const auto key = meta::series_key(record.id);
  std::string copy;
  const auto before = present_name(txn, meta::catalog::kSeries, key, copy, &stored_series_name);
  VARVE_TRY(change_name(txn, NameSpace::of_series(), static_cast<std::uint32_t>(record.id), before,
                        StoredName{record.name, check_series_name(record.name).has_value()}));
  std::string out;
  base::ByteWriter w(out);
  w.sized_text(record.name);
  put_time(w, record.created_at);
  w.varint(record.next_number);
  put_series_settings(w, settings_of(record));
  VARVE_TRY(note_series_change(txn, record.id));
  return txn.put(meta::catalog::kSeries, key, out);
}

Result<void> erase_series(meta::WriteTxn& txn, SeriesId id) {
  VARVE_TRY(erase_refused(txn, id));
  VARVE_TRY(erase_deletion(txn, id));
  const auto key = meta::series_key(id);
  std::string copy;
  const auto before = present_name(txn, meta::catalog::kSeries, key, copy, &stored_series_name);
  VARVE_TRY(change_name(txn, NameSpace::of_series(), static_cast<std::uint32_t>(id), before, {}));
  VARVE_TRY(erase_references(txn, id));
  VARVE_TRY(drop_series_sequence(txn, id));
  return txn.erase(meta::catalog::kSeries, key);
}

Result<std::vector<VersionRecord>> list_versions(const meta::Txn& txn, SeriesId series) {
  std::vector<VersionRecord> all;
  VARVE_TRY(meta::for_each_prefix(
      txn, meta::catalog::kVersions, meta::series_key(series),
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (key.size() != 8) return damaged_record("version");
        const auto number = static_cast<VersionNumber>(base::load_be32(key.substr(4)));
        VARVE_TRY_ASSIGN(auto record, decode_version(series, number, value));
        all.push_back(std::move(record));
        return true;
      }));
  part_names(all,
             [](const VersionRecord& record) { return static_cast<std::uint32_t>(record.number); });
  return all;
}

Result<std::optional<VersionRecord>> find_version(const meta::Txn& txn, SeriesId series,
                                                  VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kVersions, meta::version_key(series, number)));
  if (!value) return std::optional<VersionRecord>();
  VARVE_TRY_ASSIGN(auto record, decode_version(series, number, *value));
  return std::optional(std::move(record));
}

Result<std::optional<VersionRecord>> find_version_named(const meta::Txn& txn, SeriesId series,
                                                        std::string_view name) {
  const auto answer = find_name(txn, NameSpace::of_versions(series), name);
  if (answer.known) {
    if (!answer.number) return std::optional<VersionRecord>();
    VARVE_TRY_ASSIGN(auto record,
                     find_version(txn, series, static_cast<VersionNumber>(*answer.number)));
    if (record && record->name == name) return record;
  }
  VARVE_TRY_ASSIGN(auto all, list_versions(txn, series));
  for (auto& record : all) {
    if (record.name == name) return std::optional(std::move(record));
  }
  return std::optional<VersionRecord>();
}

namespace {

struct NewestVersions {
  std::optional<VersionRecord> sealed;
  std::vector<VersionRecord> open;  // The versions after `sealed`, newest first.
};

Result<NewestVersions> newest_versions(const meta::Txn& txn, SeriesId series) {
  NewestVersions newest;
  const auto prefix = meta::series_key(series);
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::catalog::kVersions));
  VARVE_TRY_ASSIGN(auto at, cursor.seek_at_or_before(prefix + base::be32(0xffffffffU)));
  while (at && at->key.starts_with(prefix) && !newest.sealed) {
    if (at->key.size() != 8) return damaged_record("version");
    const auto number = static_cast<VersionNumber>(base::load_be32(at->key.substr(4)));
    VARVE_TRY_ASSIGN(auto record, decode_version(series, number, at->value));
    if (record.state == VersionState::kSealed) {
      newest.sealed = std::move(record);
    } else {
      newest.open.push_back(std::move(record));
      VARVE_TRY_ASSIGN(at, cursor.previous());
    }
  }
  return newest;
}

}  // namespace

Result<std::optional<VersionRecord>> newest_sealed_version(const meta::Txn& txn, SeriesId series) {
  VARVE_TRY_ASSIGN(auto newest, newest_versions(txn, series));
  return std::move(newest.sealed);
}

Result<std::vector<VersionRecord>> newest_open_versions(const meta::Txn& txn, SeriesId series) {
  VARVE_TRY_ASSIGN(auto newest, newest_versions(txn, series));
  return std::move(newest.open);
}

Result<void> put_version(meta::WriteTxn& txn, const VersionRecord& record) {
  const auto key = meta::version_key(record.series, record.number);
  std::string copy;
  const auto before = present_name(txn, meta::catalog::kVersions, key, copy, &stored_version_name);
  const bool allowed = check_version_name(record.name, record.state).has_value();
  VARVE_TRY(change_name(txn, NameSpace::of_versions(record.series),
                        static_cast<std::uint32_t>(record.number), before,
                        StoredName{record.name, allowed}));
  std::string out;
  base::ByteWriter w(out);
  const auto state = stored_state(record);
  w.u8(static_cast<std::uint8_t>(state));
  if (state == StoredState::kBased || state == StoredState::kReplacing) {
    w.varint(static_cast<std::uint32_t>(record.base));
  }
  w.sized_text(record.name);
  put_time(w, record.opened_at);
  put_time(w, record.sealed_at);
  w.varint(record.entries);
  w.varint(record.logical_bytes);
  w.varint(record.unique_bytes);
  w.varint(record.stored_bytes);
  w.text(format::encode_dir_entry(record.root));
  // Labels leave out an unfinished version.
  if (!record.unfinished) VARVE_TRY(note_series_change(txn, record.series));
  return txn.put(meta::catalog::kVersions, key, out);
}

Result<void> erase_version(meta::WriteTxn& txn, SeriesId series, VersionNumber number) {
  const auto key = meta::version_key(series, number);
  std::string copy;
  const auto before = present_name(txn, meta::catalog::kVersions, key, copy, &stored_version_name);
  const bool labelled =
      !copy.empty() && copy.front() != static_cast<char>(StoredState::kUnfinished);
  VARVE_TRY(change_name(txn, NameSpace::of_versions(series), static_cast<std::uint32_t>(number),
                        before, {}));
  if (labelled || !before) VARVE_TRY(note_series_change(txn, series));
  VARVE_TRY(txn.erase(meta::catalog::kVersionChunks, key));
  VARVE_TRY(txn.erase(meta::catalog::kVersionLinks, key));
  VARVE_TRY(txn.erase(meta::catalog::kPoolUse, key));
  VARVE_TRY(txn.erase(meta::catalog::kRewriteCounts, key));
  return txn.erase(meta::catalog::kVersions, key);
}

Result<void> rebuild_names(meta::WriteTxn& txn) {
  struct Named {
    NameSpace space;
    std::uint32_t number;
    std::string name;
    bool allowed;
  };
  std::vector<Named> all;
  const auto add = [&](const NameSpace& space, std::string_view number,
                       const std::optional<StoredName>& stored) {
    const auto name = stored.value_or(StoredName{});
    all.push_back({space, base::load_be32(number), std::string(name.name), name.allowed});
  };
  VARVE_TRY(
      meta::for_each_prefix(txn, meta::catalog::kSeries, "",
                            [&](std::string_view key, std::string_view value) -> Result<bool> {
                              if (key.size() != 4) return damaged_record("series");
                              add(NameSpace::of_series(), key, stored_series_name(value));
                              return true;
                            }));
  VARVE_TRY(meta::for_each_prefix(
      txn, meta::catalog::kVersions, "",
      [&](std::string_view key, std::string_view value) -> Result<bool> {
        if (key.size() != 8) return damaged_record("version");
        add(NameSpace::of_versions(static_cast<SeriesId>(base::load_be32(key))), key.substr(4),
            stored_version_name(value));
        return true;
      }));
  VARVE_TRY(txn.clear(meta::catalog::kNames));
  for (const auto& [space, number, name, allowed] : all) {
    VARVE_TRY(change_name(txn, space, number, {}, StoredName{name, allowed}));
  }
  return {};
}

Result<base::IdRuns> version_chunks(const meta::Txn& txn, SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kVersionChunks, meta::version_key(series, number)));
  if (!value) return damaged_record("version's chunk");
  return base::IdRuns::decode(*value);
}

Result<void> put_version_chunks(meta::WriteTxn& txn, SeriesId series, VersionNumber number,
                                const base::IdRuns& chunks) {
  std::string out;
  chunks.encode(out);
  return txn.put(meta::catalog::kVersionChunks, meta::version_key(series, number), out);
}

Result<std::optional<LinkTable>> version_links(const meta::Txn& txn, SeriesId series,
                                               VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto value,
                   txn.get(meta::catalog::kVersionLinks, meta::version_key(series, number)));
  if (!value) return std::optional<LinkTable>();
  VARVE_TRY_ASSIGN(auto links, LinkTable::decode(*value));
  return std::optional(std::move(links));
}

Result<void> put_version_links(meta::WriteTxn& txn, SeriesId series, VersionNumber number,
                               const LinkTable& links) {
  std::string out;
  links.encode(out);
  return txn.put(meta::catalog::kVersionLinks, meta::version_key(series, number), out);
}

}  // namespace varve::catalog
