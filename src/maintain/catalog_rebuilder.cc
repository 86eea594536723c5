// SPDX-License-Identifier: Apache-2.0
#include "maintain/catalog_rebuilder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/random_bytes.h"
#include "catalog/clock_record.h"
#include "catalog/layout_records.h"
#include "catalog/object_store.h"
#include "catalog/pool_records.h"
#include "catalog/sequence_record.h"
#include "catalog/stored_name.h"
#include "catalog/version_origin.h"
#include "maintain/manifest_substitute.h"
#include "maintain/owners.h"
#include "maintain/tree_chunks.h"
#include "maintain/write_batch.h"
#include "meta/schema.h"
#include "store/repository_paths.h"

namespace varve::maintain {

using format::ManifestRecord;

namespace {

std::optional<VersionNumber> number_in(std::string_view key) {
  if (key.size() != 4) return std::nullopt;
  return static_cast<VersionNumber>(base::load_be32(key));
}

// Appends a number to distinguish a name from an equal name.
void add_number(std::string& name, std::uint32_t number) {
  const auto suffix = fmt::format(".{}", number);
  if (name.size() + suffix.size() > kNameBytesMax) name = catalog::replacement_name(number);
  name += suffix;
}

// Returns limits for the records of a manifest. A set of chunks has at most one run per chunk. If
// containers are lost, a valid set may exceed the limit; the rebuilder then collects the chunks
// from the tree.
ManifestBounds bounds_by(const ContainerScan& scan, const ContainerScan& pool) {
  constexpr std::size_t kRunBytesMax = 15;
  constexpr std::size_t kAlwaysAllowed = std::size_t{64} << 10;
  ManifestBounds bounds;
  bounds.chunk_set_bytes = kAlwaysAllowed;
  for (const auto* one : {&scan, &pool}) {
    for (const auto& found : one->containers) {
      bounds.chunk_set_bytes += found.record.chunks * kRunBytesMax;
    }
  }
  bounds.link_bytes = std::size_t{64} << 20;
  return bounds;
}

// Returns whether a manifest's record has a later lock than the labels. A lock is never shortened,
// and labels are written first (O27), so labels with an earlier lock are older than the manifest.
bool locks_longer(std::string_view manifest, const std::optional<std::string>& labels) {
  const auto own = catalog::decode_retention(manifest);
  if (!own) return false;
  const auto other = labels ? catalog::decode_retention(*labels) : catalog::RetentionRecord{};
  return other && other->locked_until < own->locked_until;
}

bool is_sealed(const std::optional<catalog::VersionRecord>& record) {
  return record && record->state == VersionState::kSealed;
}

}  // namespace

CatalogRebuilder::CatalogRebuilder(const format::DataCodecs& codecs, io::FileSystem& files,
                                   store::StoreOpener open_store, std::string repository_path,
                                   const meta::Env& catalog, const RebuildChoices& choices,
                                   std::function<void(std::uint64_t)> progress)
    : codecs_(codecs),
      files_(files),
      open_store_(std::move(open_store)),
      path_(std::move(repository_path)),
      catalog_(catalog),
      choices_(choices),
      progress_(std::move(progress)) {}

std::string CatalogRebuilder::series_directory(SeriesId series) const {
  return owner_folder(store::RepositoryPaths(path_), series);
}

std::unique_ptr<store::SegmentStore> CatalogRebuilder::open_store(SeriesId owner) {
  return store::open_store(open_store_, files_, series_directory(owner));
}

template <typename Record>
void CatalogRebuilder::tell_replaced_name(const Record& record) {
  if (record.name_fault.empty()) return;
  problem(
      fmt::format("{}: the recorded name was not allowed ({}), so the version has this name now",
                  record.name, record.name_fault));
}

Result<RebuildReport> CatalogRebuilder::run() {
  {
    VARVE_TRY_ASSIGN(const auto id, base::random_bytes<16>());
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
    VARVE_TRY(txn.put(meta::catalog::kSettings, kCatalogIdSetting, base::as_text(id)));
    VARVE_TRY(txn.commit());
  }
  VARVE_TRY(scan_pool());
  VARVE_TRY_ASSIGN(auto names, files_.list(path_ + "/series"));
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    const auto series = series_of_folder(name);
    if (!series) continue;
    // A user's file may have the name of a series' folder.
    const auto inside = files_.list(path_ + "/series/" + name);
    if (!inside && inside.error().code() == ErrorCode::kNotDirectory) continue;
    VARVE_TRY(rebuild_series(*series));
  }
  VARVE_TRY(put_pool());
  for (auto& lost : label_facts_.lost_series(
           names_of_series_, [this](SeriesId series) { return series_directory(series); })) {
    problem(std::move(lost));
  }
  VARVE_TRY(label_facts_.put(catalog_, names_of_series_));
  return std::move(report_);
}

Result<std::vector<std::pair<SeriesId, std::string>>> CatalogRebuilder::labels(
    const std::string& superblock) const {
  std::vector<std::pair<SeriesId, std::string>> all;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  // The newest labels are last: until then, a repeated repair has the facts of the present repair.
  auto series_in_order = done_;
  std::stable_partition(series_in_order.begin(), series_in_order.end(),
                        [this](SeriesId series) { return !label_facts_.are_newest(series); });
  for (const auto series : series_in_order) {
    VARVE_TRY_ASSIGN(auto removed, removed_versions(txn, files_, series_directory(series), series));
    // The caller puts these files away. A user may put one back.
    std::erase_if(removed, [&](VersionNumber number) {
      const auto path = manifest_path(series_directory(series), number);
      return std::ranges::find(report_.left_out, path) != report_.left_out.end();
    });
    VARVE_TRY_ASSIGN(auto image, encode_labels(txn, codecs_.frames(), series, superblock,
                                               {.removed = &removed}));
    all.emplace_back(series, std::move(image));
  }
  return all;
}

Result<ContainerScan> CatalogRebuilder::scan(store::SegmentStore& store, StoreId store_id) {
  VARVE_TRY_ASSIGN(auto scan,
                   scan_containers(store, codecs_.frames().keys(), store_id,
                                   choices_.found.value_or(FoundBySearch::kLeave), progress_));
  for (const UnreadRange& range : scan.searched) {
    if (!choices_.found) {
      return Error(ErrorCode::kInvalid,
                   fmt::format("{}: the {} bytes from offset {} on lie behind a damaged header and "
                               "look like containers, but they may be a part of a stored file that "
                               "is a repository itself. Nothing was changed. Repair with "
                               "--found=use to take them, and compare the files with other "
                               "copies; or with --found=skip to give them up",
                               range.path, range.bytes, range.offset));
    }
    if (*choices_.found == FoundBySearch::kTake) {
      problem(
          fmt::format("{}: the containers from offset {} on were found by a search behind damage; "
                      "compare the files that use them with other copies",
                      range.path, range.offset));
    }
  }
  return scan;
}

Result<void> CatalogRebuilder::rebuild_series(SeriesId series) {
  owner_.reset();
  labels_found_ = LabelsFound::kNone;
  whole_ = true;
  versions_.clear();
  chunks_of_.clear();
  open_.clear();
  const auto segments = open_store(series);
  auto& store = *segments;
  VARVE_TRY_ASSIGN(auto scan, this->scan(store, catalog::store_of(series)));
  VARVE_TRY(read_labels_of(series));
  VARVE_TRY(read_manifests(series, scan));
  if (!owner_) {
    const auto directory = series_directory(series);
    VARVE_TRY_ASSIGN(const bool any, files_.exists(directory + "/" + kManifestFolder));
    // A crash left the folder. The series was new or already removed.
    if (!any) return {};
    owner_.emplace();
    owner_->id = series;
    owner_->name = fmt::format("recovered-{}", static_cast<std::uint32_t>(series));
    problem(directory + ": the name of the series is lost; it is called " + owner_->name);
  }
  StoreBirths births;
  for (const auto& [number, version] : versions_) {
    if (version.births) births.note(*version.births);
  }
  for (const auto& fault : births.choose(scan)) VARVE_TRY(leave_out(store.describe(), fault));
  drop_repeated_numbers(scan, store);
  const auto runs = runs_by_birth(scan);
  VARVE_TRY(drop_other_history(series, {store, catalog::store_of(series), runs, births}));
  keep_locks(series);
  VARVE_TRY(keep_whole_versions(series, scan));
  VARVE_TRY(choose_versions(series));
  // A lost version may have left chunks, so no other version gets its number.
  for (const auto& [birth, of_birth] : runs) {
    owner_->next_number = std::max(owner_->next_number, number_after(birth));
  }
  tell_replaced_name(*owner_);
  while (!series_names_.insert(owner_->name).second) {
    add_number(owner_->name, static_cast<std::uint32_t>(series));
    problem("the series " + owner_->name + ": another series has the same name");
  }
  VARVE_TRY(put_versions(series));
  VARVE_TRY(put_locations(series, store, scan));
  VARVE_TRY(births.put(catalog_, catalog::store_of(series)));
  if (whole_) VARVE_TRY(drop_unreachable(series));
  if (!whole_ || !open_.empty()) pool_.claims.set_incomplete();
  pool_.claims.add(chunks_of_);
  ++report_.series;
  done_.push_back(series);
  names_of_series_[series] = owner_->name;
  return {};
}

Result<void> CatalogRebuilder::read_labels_of(SeriesId series) {
  auto labels = read_labels(files_, codecs_.frames(), series_directory(series), series);
  VARVE_TRY(refuse_unsupported(labels));
  if (!labels) {
    whole_ = false;
    problem(series_directory(series) + "/" + kLabelsName + ": " + labels.error().message() +
            "; the rebuilt catalog has every version with a manifest, under the name of its seal. "
            "It has a lock only if the version's manifest has it (locks of Varve 0.1 do not)");
    return {};
  }
  VARVE_TRY_ASSIGN(owner_, catalog::decode_series(series, labels->series));
  labels_found_ = labels->notes_removed ? LabelsFound::kNotingDeletions : LabelsFound::kPlain;
  VARVE_TRY_ASSIGN(const auto present, list_manifests(files_, series_directory(series)));
  for (const auto& file : present) {
    if (labels->removed.contains(file.number)) versions_[file.number].is_removed = true;
  }
  label_facts_.add(series, *labels);
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  for (const auto& entry : labels->records) {
    if (entry.what == ManifestRecord::kSetting) {
      if (entry.key == catalog::kPoolBirthSetting) pool_.claims.note_next_birth(entry.value);
      VARVE_TRY(merge_label_setting(txn, entry.key, entry.value));
      continue;
    }
    const auto number = number_in(entry.key);
    if (!number) continue;
    auto& version = versions_[*number];
    version.labelled = true;
    if (entry.what == ManifestRecord::kVersion) {
      VARVE_TRY_ASSIGN(version.record, catalog::decode_version(series, *number, entry.value));
    } else if (entry.what == ManifestRecord::kRetention) {
      version.retention = entry.value;
    } else if (entry.what == ManifestRecord::kVersionChunks) {
      version.chunks = entry.value;
      pool_.claims.note_births(entry.value);
    }
  }
  return txn.commit();
}

Result<void> CatalogRebuilder::read_manifests(SeriesId series, const ContainerScan& scan) {
  const auto directory = series_directory(series);
  const auto bounds = bounds_by(scan, pool_.scan);
  VARVE_TRY_ASSIGN(const auto present, list_manifests(files_, directory));
  WriteBatch batch(catalog_);
  for (const auto& file : present) {
    auto& version = versions_[file.number];
    const auto visit = [&](ManifestRecord what, std::string_view key,
                           std::string_view value) -> Result<void> {
      if (what == ManifestRecord::kNode || what == ManifestRecord::kRecipe) {
        if (key.size() != 8 || base::load_be32(key) != static_cast<std::uint32_t>(file.number)) {
          return {};
        }
        const auto record = catalog::encode_object(value);
        VARVE_TRY_ASSIGN(auto* txn, batch.txn(record.size()));
        const auto table =
            what == ManifestRecord::kNode ? meta::catalog::kNodes : meta::catalog::kRecipes;
        return txn->put(table, meta::object_key(series, base::load_be64(key)), record);
      }
      if (what == ManifestRecord::kSeries && labels_found_ == LabelsFound::kNone) {
        VARVE_TRY_ASSIGN(owner_, catalog::decode_series(series, value));
      }
      if (number_in(key) != file.number) return {};
      // The labels' record of a sealed version is newer than the manifest's.
      const bool labelled = version.labelled && is_sealed(version.record);
      if (what == ManifestRecord::kVersion && !labelled) {
        VARVE_TRY_ASSIGN(auto record, catalog::decode_version(series, file.number, value));
        VARVE_TRY_ASSIGN(const bool going_on,
                         files_.exists(fmt::format("{}/staging/{:08x}-{:08x}", path_,
                                                   static_cast<std::uint32_t>(series),
                                                   static_cast<std::uint32_t>(file.number))));
        // If staging exists, the seal that wrote the manifest did not reach the commit.
        if (!going_on) version.record = std::move(record);
      } else if (what == ManifestRecord::kVersion) {
        const auto record = catalog::decode_version(series, file.number, value);
        if (record && !is_same_seal(*record, *version.record)) version.of_other_seal = *record;
      } else if (what == ManifestRecord::kRetention &&
                 (!labelled || locks_longer(value, version.retention))) {
        version.retention = value;
      } else if (what == ManifestRecord::kVersionChunks) {
        version.chunks = value;
        pool_.claims.note_births(value);
      } else if (what == ManifestRecord::kVersionLinks) {
        version.links = value;
      } else if (what == ManifestRecord::kBirths) {
        VARVE_TRY_ASSIGN(version.births, format::decode_births(value));
      }
      return {};
    };
    const auto read = read_manifest(files_, codecs_.frames(), manifest_path(directory, file.number),
                                    visit, bounds);
    VARVE_TRY(refuse_unsupported(read));
    if (!read || read->damaged_blocks != 0) {
      version.fault = read
                          ? fmt::format("{}: {} damaged blocks",
                                        manifest_path(directory, file.number), read->damaged_blocks)
                          : read.error().message();
    }
    if (progress_) progress_(file.bytes);
    report_.bytes_read += file.bytes;
  }
  VARVE_TRY(batch.commit());
  for (auto& [number, version] : versions_) {
    const bool has = std::any_of(present.begin(), present.end(),
                                 [&, of = number](const auto& file) { return file.number == of; });
    if (has || !is_sealed(version.record)) continue;
    version.fault = manifest_path(directory, number) + " is missing";
  }
  for (auto& [number, version] : versions_) {
    if (version.fault.empty()) continue;
    std::optional<ManifestRecords> records;
    if (choices_.in_place != nullptr && is_sealed(version.record)) {
      VARVE_TRY_ASSIGN(records, copy_version(*choices_.in_place, catalog_, *version.record));
    }
    version.damaged = !records;
    if (records) {
      pool_.claims.note_births(records->chunks);
      version.chunks = std::move(records->chunks);
      version.links = std::move(records->links);
      version.births = std::move(records->births);
      report_.notes.push_back(version.fault + "; the catalog in place has all of " +
                              name_of(number));
    } else {
      whole_ = false;
      problem(version.fault);
    }
  }
  return {};
}

// Keeps the versions in the labels, and the versions sealed after the last write of the labels.
Result<void> CatalogRebuilder::choose_versions(SeriesId series) {
  for (auto it = versions_.begin(); it != versions_.end();) {
    auto& [number, version] = *it;
    const auto next = number_after(number);
    const bool newer = next > owner_->next_number;
    owner_->next_number = std::max(owner_->next_number, next);
    const bool listed = version.labelled || labels_found_ == LabelsFound::kNone || version.is_kept;
    const bool alive = version.record && (listed || newer);
    if (!alive) {
      version.labelled ? report_lost_lock(number, version) : note_deleted(number, version);
      it = versions_.erase(it);
      continue;
    }
    if (version.record->state == VersionState::kOpen) {
      const auto staging =
          fmt::format("{}/staging/{:08x}-{:08x}", path_, static_cast<std::uint32_t>(series),
                      static_cast<std::uint32_t>(number));
      VARVE_TRY_ASSIGN(const bool present, files_.exists(staging + "/overlay"));
      if (!present) {
        problem(name_of(number) + " was open and is lost, because " + staging + " is missing");
        it = versions_.erase(it);
        continue;
      }
      open_.insert(number);
    }
    ++it;
  }
  for (auto it = versions_.begin(); it != versions_.end();) {
    const auto base = it->second.record->base;
    if (base == VersionNumber{} || versions_.contains(base)) {
      ++it;
      continue;
    }
    problem(name_of(it->first) +
            " was open and is lost, because the version that it was based on is lost");
    open_.erase(it->first);
    it = versions_.erase(it);
  }
  return {};
}

Result<void> CatalogRebuilder::put_versions(SeriesId series) {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  std::set<std::string> names;
  for (auto& [number, version] : versions_) {
    const bool sealed = version.record->state == VersionState::kSealed;
    std::optional<base::IdRuns> chunks;
    if (version.chunks) {
      auto stored = base::IdRuns::decode(*version.chunks);
      if (stored) chunks = std::move(*stored);
    }
    if (sealed && (version.damaged || !chunks)) {
      bool readable = true;
      const auto found = tree_chunks(catalog_, series, version.record->root, readable);
      chunks = chunks ? chunks->unite(found) : found;
      if (!readable) {
        catalog::mark_incomplete(version.record->root.xattrs, number);
        problem(name_of(number) + ": a part of its tree is lost");
      }
    }
    tell_replaced_name(*version.record);
    while (!names.insert(version.record->name).second) {
      add_number(version.record->name, static_cast<std::uint32_t>(number));
      problem(name_of(number) + ": another version had the same name");
    }
    VARVE_TRY(catalog::put_version(txn, *version.record));
    if (chunks) VARVE_TRY(catalog::put_version_chunks(txn, series, number, *chunks));
    const auto key = meta::version_key(series, number);
    const auto put = [&](meta::TableIndex table, const std::string& value) {
      return txn.put(table, key, value);
    };
    if (version.links && sealed) VARVE_TRY(put(meta::catalog::kVersionLinks, *version.links));
    if (version.retention && sealed) {
      if (catalog::decode_retention(*version.retention)) {
        VARVE_TRY(put(meta::catalog::kRetention, *version.retention));
      } else {
        report_lost_lock(number, version);
      }
    }
    chunks_of_[number] = chunks.value_or(base::IdRuns());
    report_.versions += sealed ? 1 : 0;
  }
  VARVE_TRY(catalog::put_series(txn, *owner_));
  return txn.commit();
}

}  // namespace varve::maintain
