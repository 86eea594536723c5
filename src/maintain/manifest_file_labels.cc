// SPDX-License-Identifier: Apache-2.0
// Writes, extends and reads labels (docs/FORMAT.md §9).
#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "base/coding.h"
#include "catalog/clock_record.h"
#include "catalog/deletion_record.h"
#include "catalog/disk_record.h"
#include "catalog/pool_records.h"
#include "catalog/refused_record.h"
#include "catalog/sequence_record.h"
#include "catalog/series_catalog.h"
#include "catalog/series_sequences.h"
#include "maintain/manifest_file.h"
#include "meta/schema.h"

namespace varve::maintain {

using format::ManifestRecord;

namespace {

Error damaged_labels(const std::string& path) {
  return {ErrorCode::kCorrupt, path + ": the labels are damaged"};
}

/// Joins labels with updates.
class LabelsAssembler {
 public:
  explicit LabelsAssembler(Labels& labels) : labels_(labels) {}

  /// Begins the labels, or an update.
  void begin() { renewed_.clear(); }
  /// Takes a record. In an update, the records of a version replace all earlier records of the
  /// version.
  void take(ManifestRecord what, std::string_view key, std::string_view value) {
    if (what == ManifestRecord::kSuperblock) {
      labels_.superblock = value;
    } else if (what == ManifestRecord::kSeries) {
      labels_.series = value;
    } else if (what == ManifestRecord::kSetting && key == kCatalogIdSetting) {
      labels_.catalog_id = value;
    } else if (what == ManifestRecord::kSetting) {
      settings_[std::string(key)] = value;
    } else if (what == ManifestRecord::kRemoved) {
      versions_.erase(std::string(key));
      note_removed(key);
    } else {
      if (key.size() == 4) labels_.removed.erase(static_cast<VersionNumber>(base::load_be32(key)));
      auto& records = versions_[std::string(key)];
      if (renewed_.insert(std::string(key)).second) records.clear();
      records.push_back({what, std::string(key), std::string(value)});
    }
  }
  void finish() {
    for (auto& [key, records] : versions_) {
      for (auto& record : records) labels_.records.push_back(std::move(record));
    }
    for (auto& [key, value] : settings_) {
      labels_.records.push_back({ManifestRecord::kSetting, key, std::move(value)});
    }
  }

 private:
  void note_removed(std::string_view key) {
    if (key.size() != 4) return;
    const auto number = static_cast<VersionNumber>(base::load_be32(key));
    if (number == VersionNumber{}) {
      labels_.notes_removed = true;
    } else {
      labels_.removed.insert(number);
    }
  }

  Labels& labels_;
  std::map<std::string, std::vector<Labels::Record>> versions_;  // By big-endian number.
  std::map<std::string, std::string> settings_;
  std::set<std::string> renewed_;
};

// Returns whether an intact update follows somewhere after `offset`. If so, the bytes at `offset`
// are damaged; otherwise an interrupted append left the bytes.
Result<bool> has_update_after(io::File& file, std::uint64_t offset, std::uint64_t size,
                              SeriesId series) {
  VARVE_TRY_ASSIGN(const auto bytes,
                   io::read_despite_damage(file, offset, static_cast<std::size_t>(size - offset)));
  const std::string_view text = bytes;
  std::string magic;
  base::ByteWriter(magic).u32(format::kManifestMagic);
  for (auto at = text.find(magic, 1); at != std::string_view::npos; at = text.find(magic, at + 1)) {
    const auto header = format::decode_manifest_header(base::as_bytes(text.substr(at)));
    if (header && header->kind == format::ManifestKind::kUpdate && header->series == series) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_labelled_setting(std::string_view key) {
  return key != catalog::kDiskSetting && key != catalog::kPoolMergingSetting &&
         key != catalog::kPostPassSetting && !key.starts_with(catalog::kRefusedSetting) &&
         !key.starts_with(catalog::kDeletedSetting);
}

Result<void> for_each_label(const meta::Txn& txn, SeriesId series, const std::string& superblock,
                            const LabelsView& view, const ManifestVisit& visit) {
  VARVE_TRY(visit(ManifestRecord::kSuperblock, "", superblock));
  VARVE_TRY_ASSIGN(const auto owner, txn.get(meta::catalog::kSeries, meta::series_key(series)));
  if (!owner) return Error(ErrorCode::kNotFound, "no such series");
  VARVE_TRY(visit(ManifestRecord::kSeries, "", *owner));
  VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series));
  for (const auto& version : versions) {
    // An unfinished version is dropped after a crash.
    if (version.unfinished || view.without.contains(version.number)) continue;
    const auto key = base::be32(static_cast<std::uint32_t>(version.number));
    const auto add = [&](meta::TableIndex table, ManifestRecord what) -> Result<void> {
      VARVE_TRY_ASSIGN(const auto value, txn.get(table, meta::version_key(series, version.number)));
      return value ? visit(what, key, *value) : Result<void>();
    };
    VARVE_TRY(add(meta::catalog::kVersions, ManifestRecord::kVersion));
    VARVE_TRY(add(meta::catalog::kRetention, ManifestRecord::kRetention));
    if (version.state != VersionState::kOpen) continue;
    if (view.open_chunks != nullptr && view.open_chunks->contains(version.number)) {
      std::string value;
      view.open_chunks->at(version.number).encode(value);
      VARVE_TRY(visit(ManifestRecord::kVersionChunks, key, value));
    } else {
      VARVE_TRY(add(meta::catalog::kVersionChunks, ManifestRecord::kVersionChunks));
    }
  }
  const auto add_setting = [&](std::string_view key, std::string_view value) -> Result<bool> {
    if (!is_labelled_setting(key)) return true;
    const std::string* const own = key == catalog::kClockSetting             ? view.clock
                                   : key == catalog::kSequenceSetting        ? view.sequence
                                   : key == catalog::kSeriesSequencesSetting ? view.series_sequences
                                                                             : nullptr;
    if (own != nullptr && own->empty()) return true;
    if (own != nullptr) value = *own;
    VARVE_TRY(visit(ManifestRecord::kSetting, key, value));
    return true;
  };
  VARVE_TRY(meta::for_each_prefix(txn, meta::catalog::kSettings, "", add_setting));
  if (view.removed == nullptr) return {};
  VARVE_TRY(visit(ManifestRecord::kRemoved, removed_key(VersionNumber{}), ""));
  for (const auto number : *view.removed) {
    VARVE_TRY(visit(ManifestRecord::kRemoved, removed_key(number), ""));
  }
  return {};
}

std::string removed_key(VersionNumber number) {
  return base::be32(static_cast<std::uint32_t>(number));
}

Result<std::set<VersionNumber>> removed_versions(const meta::Txn& txn, io::FileSystem& files,
                                                 const std::string& series_directory,
                                                 SeriesId series) {
  std::set<VersionNumber> removed;
  VARVE_TRY_ASSIGN(const auto present, list_manifests(files, series_directory));
  for (const auto& file : present) {
    VARVE_TRY_ASSIGN(const auto known, catalog::find_version(txn, series, file.number));
    if (!known) removed.insert(file.number);
  }
  return removed;
}

Result<std::string> encode_labels(const meta::Txn& txn, const format::FrameCodec& codec,
                                  SeriesId series, const std::string& superblock,
                                  const LabelsView& view) {
  format::ManifestHeader wanted;
  wanted.kind = format::ManifestKind::kLabels;
  wanted.grows = true;
  wanted.series = series;
  wanted.stamp = txn.id();
  std::string body;
  // Not compressed: labels are small, and the length must not depend on the release of zstd.
  format::ManifestEncoder encoder(wanted, codec, format::Compression{},
                                  [&](std::string_view bytes) -> Result<void> {
                                    body += bytes;
                                    return {};
                                  });
  VARVE_TRY(for_each_label(txn, series, superblock, view,
                           [&](ManifestRecord what, std::string_view key, std::string_view value) {
                             return encoder.add(what, key, value);
                           }));
  VARVE_TRY_ASSIGN(const auto header, encoder.finish());
  return format::encode_manifest_header(header) + body;
}

Result<void> write_labels(io::FileSystem& files, const std::string& series_directory,
                          const std::string& labels) {
  VARVE_TRY(files.make_directory(series_directory));
  return files.write_file_atomically(series_directory, kLabelsName, base::as_bytes(labels));
}

std::string Labels::setting(std::string_view name) const {
  const auto found = std::find_if(records.begin(), records.end(), [&](const Record& record) {
    return record.what == ManifestRecord::kSetting && record.key == name;
  });
  return found == records.end() ? std::string() : found->value;
}

std::uint64_t Labels::sequence() const {
  const auto number = catalog::decode_sequence(setting(catalog::kSequenceSetting));
  return number ? *number : 0;
}

namespace {

// Records ignored by a comparison of labels.
struct Uncompared {
  std::set<std::string> versions{};  // Keys of versions.
  bool series = false;               // The record of the series.
};

Result<bool> agree_without(const meta::Txn& txn, SeriesId series, const std::string& superblock,
                           const Labels& labels, const Uncompared& without) {
  const auto counts = [&](std::string_view key) {
    return !without.versions.contains(std::string(key));
  };
  std::vector<const Labels::Record*> records;
  for (const auto& record : labels.records) {
    if (counts(record.key)) records.push_back(&record);
  }
  bool same = true;
  std::size_t at = 0;
  const auto clock = labels.setting(catalog::kClockSetting);
  const auto sequence = labels.setting(catalog::kSequenceSetting);
  const auto sequences = labels.setting(catalog::kSeriesSequencesSetting);
  VARVE_TRY(for_each_label(
      txn, series, superblock,
      {.clock = &clock, .sequence = &sequence, .series_sequences = &sequences},
      [&](ManifestRecord what, std::string_view key, std::string_view value) -> Result<void> {
        if (what == ManifestRecord::kSuperblock) {
          same = same && labels.superblock == value;
        } else if (what == ManifestRecord::kSeries) {
          same = same && (without.series || labels.series == value);
        } else if (what == ManifestRecord::kSetting && key == kCatalogIdSetting) {
          same = same && labels.catalog_id == value;
        } else if (counts(key)) {
          same = same && at < records.size() && records[at]->what == what &&
                 records[at]->key == key && records[at]->value == value;
          ++at;
        }
        return {};
      }));
  return same && at == records.size();
}

// Returns the keys of records changed by checkpoints and streams without an update of the labels.
Result<std::set<std::string>> open_versions(const meta::Txn& txn, SeriesId series) {
  // Each stream to the pool takes a birth.
  std::set<std::string> open{catalog::kPoolBirthSetting};
  VARVE_TRY_ASSIGN(const auto versions, catalog::list_versions(txn, series));
  for (const auto& version : versions) {
    if (version.state != VersionState::kOpen || version.unfinished) continue;
    open.insert(base::be32(static_cast<std::uint32_t>(version.number)));
  }
  return open;
}

}  // namespace

Result<bool> labels_agree(const meta::Txn& txn, SeriesId series, const std::string& superblock,
                          const Labels& labels) {
  VARVE_TRY_ASSIGN(const auto needed, catalog::find_series_sequences(txn));
  const auto own = needed.find(series);
  if (own != needed.end() && labels.sequence() < own->second) return false;
  return agree_without(txn, series, superblock, labels, {});
}

std::vector<catalog::VersionRecord> labelled_versions(SeriesId series, const Labels& labels) {
  std::vector<catalog::VersionRecord> versions;
  for (const auto& entry : labels.records) {
    if (entry.what != ManifestRecord::kVersion || entry.key.size() != 4) continue;
    const auto number = static_cast<VersionNumber>(base::load_be32(entry.key));
    auto record = catalog::decode_version(series, number, entry.value);
    if (record) versions.push_back(*std::move(record));
  }
  return versions;
}

Result<bool> sealed_labels_agree(const meta::Txn& txn, SeriesId series, const Labels& labels) {
  VARVE_TRY_ASSIGN(const auto open, open_versions(txn, series));
  return agree_without(txn, series, labels.superblock, labels, {.versions = open});
}

Result<bool> labels_agree_but(const meta::Txn& txn, SeriesId series, const std::string& superblock,
                              const Labels& labels, const std::vector<VersionNumber>& changed) {
  VARVE_TRY_ASSIGN(auto without, open_versions(txn, series));
  std::set<std::string> known;
  for (const auto& record : labels.records) {
    if (record.what == ManifestRecord::kVersion) known.insert(record.key);
  }
  for (const auto number : changed) {
    const auto key = base::be32(static_cast<std::uint32_t>(number));
    without.insert(key);
    known.insert(key);
  }
  for (const auto& key : without) {
    if (key != catalog::kPoolBirthSetting && !known.contains(key)) return false;
  }
  return agree_without(txn, series, superblock, labels, {.versions = without, .series = true});
}

Result<std::uint64_t> append_labels(io::FileSystem& files, const format::FrameCodec& codec,
                                    const std::string& series_directory,
                                    const LabelsUpdate& update) {
  format::ManifestHeader identity;
  identity.kind = format::ManifestKind::kUpdate;
  identity.grows = true;
  identity.series = update.series;
  identity.stamp = update.stamp;
  std::string body;
  format::ManifestEncoder encoder(identity, codec, format::Compression{},
                                  [&](std::string_view bytes) -> Result<void> {
                                    body += bytes;
                                    return {};
                                  });
  for (const auto& record : update.records) {
    VARVE_TRY(encoder.add(record.what, record.key, record.value));
  }
  VARVE_TRY_ASSIGN(const auto header, encoder.finish());
  const auto bytes = format::encode_manifest_header(header) + body;
  const auto path = series_directory + "/" + kLabelsName;
  VARVE_TRY_ASSIGN(const bool present, files.exists(path));
  if (!present) return damaged_labels(path);
  VARVE_TRY_ASSIGN(const auto file, files.open(path, io::OpenMode::kReadWrite));
  VARVE_TRY_ASSIGN(const auto size, file->size());
  if (size != update.at) return damaged_labels(path);
  // Does not rewrite the bytes promised by earlier syncs (O20).
  const auto at = file->next_append(update.at);
  VARVE_TRY(file->write_at(at, base::as_bytes(bytes)));
  VARVE_TRY(file->sync());
  return at + bytes.size();
}

Result<Labels> read_labels(io::FileSystem& files, const format::FrameCodec& codec,
                           const std::string& series_directory, SeriesId series) {
  Labels labels;
  const auto path = series_directory + "/" + kLabelsName;
  VARVE_TRY_ASSIGN(const auto file, files.open(path, io::OpenMode::kRead));
  VARVE_TRY_ASSIGN(const auto size, file->size());
  if (size > kLabelsBytesMax) return damaged_labels(path);
  LabelsAssembler assembler(labels);
  const auto take = [&](ManifestRecord what, std::string_view key, std::string_view value) {
    assembler.take(what, key, value);
    return Result<void>();
  };
  VARVE_TRY_ASSIGN(const auto base, read_manifest_part(*file, codec, path, 0, take, {}));
  labels.header = base.header;
  labels.base_bytes = labels.end = base.end;
  if (base.damaged_blocks != 0 || base.header.kind != format::ManifestKind::kLabels ||
      base.header.series != series || labels.series.empty() ||
      (!base.header.grows && base.end != size)) {
    return damaged_labels(path);
  }
  for (auto at = file->next_append(labels.end); at < size; at = file->next_append(labels.end)) {
    std::vector<Labels::Record> records;
    const auto collect = [&](ManifestRecord what, std::string_view key, std::string_view value) {
      records.push_back({what, std::string(key), std::string(value)});
      return Result<void>();
    };
    const auto update = read_manifest_part(*file, codec, path, at, collect, {});
    if (!update && update.error().code() != ErrorCode::kCorrupt) return update.error();
    const bool sound = update && update->damaged_blocks == 0 &&
                       update->header.kind == format::ManifestKind::kUpdate &&
                       update->header.series == series &&
                       update->header.stamp >= labels.header.stamp;
    if (!sound) {
      VARVE_TRY_ASSIGN(const bool more, has_update_after(*file, at, size, series));
      if (more) return damaged_labels(path);
      break;
    }
    assembler.begin();
    for (const auto& record : records) assembler.take(record.what, record.key, record.value);
    labels.header.stamp = update->header.stamp;
    labels.end = update->end;
  }
  assembler.finish();
  labels.torn = labels.end < size;
  return labels;
}

std::vector<std::string> ids_of_catalogs(std::string_view value) {
  std::vector<std::string> ids;
  for (; value.size() >= kCatalogIdBytes; value.remove_prefix(kCatalogIdBytes)) {
    ids.emplace_back(value.substr(0, kCatalogIdBytes));
  }
  return ids;
}

Result<std::vector<std::string>> replaced_catalogs(const meta::Txn& txn) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kReplacedCatalogsSetting));
  return ids_of_catalogs(value ? value->view() : "");
}

Result<bool> are_later_labels(const meta::Txn& txn, const Labels& labels) {
  VARVE_TRY_ASSIGN(const auto id, txn.get(meta::catalog::kSettings, kCatalogIdSetting));
  if (id && id->view() == labels.catalog_id) return labels.header.stamp > txn.id();
  VARVE_TRY_ASSIGN(const auto replaced, replaced_catalogs(txn));
  return std::ranges::find(replaced, labels.catalog_id) == replaced.end();
}

}  // namespace varve::maintain
