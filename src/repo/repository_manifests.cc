// SPDX-License-Identifier: Apache-2.0
// Keeps manifests and labels up to date with the catalog, so that it can be rebuilt from them.
#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/log.h"
#include "catalog/clock_record.h"
#include "catalog/object_set.h"
#include "maintain/manifest_file.h"
#include "meta/schema.h"
#include "repo/repository_impl.h"

namespace varve::repo {

namespace {

using maintain::ManifestWriter;

constexpr std::uint64_t kAllObjects = std::uint64_t{1} << 32;

Error older_catalog(const std::string& path) {
  return {ErrorCode::kCorrupt,
          path +
              "/catalog is older than the rest of the repository: put the right one back, or "
              "run `varve repair`, which rebuilds it from the manifests",
          EIO};
}

bool is_sealed(const std::vector<catalog::VersionRecord>& records, VersionNumber number) {
  return std::any_of(records.begin(), records.end(), [&](const auto& record) {
    return record.number == number && record.state == VersionState::kSealed;
  });
}

// Returns the first sealed version after `number` that is not being deleted, or null. A version
// shares objects only with the version before it. If this one refers to none of `number`'s objects,
// no later one does.
const catalog::VersionRecord* next_user(const std::vector<catalog::VersionRecord>& records,
                                        const std::vector<catalog::VersionRecord>& gone,
                                        VersionNumber number) {
  for (const auto& record : records) {
    if (record.number > number && record.state == VersionState::kSealed &&
        !is_sealed(gone, record.number)) {
      return &record;
    }
  }
  return nullptr;
}

// Collects the births of objects in a table, ascending.
Result<void> collect_births(const meta::Txn& txn, meta::TableIndex table, SeriesId series,
                            std::set<VersionNumber>& births) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, table));
  const auto prefix = meta::series_key(series);
  VARVE_TRY_ASSIGN(auto at, cursor.seek(prefix));
  while (at && at->key.starts_with(prefix) && at->key.size() == 12) {
    const auto birth = base::load_be32(at->key.substr(4));
    births.insert(static_cast<VersionNumber>(birth));
    if (birth == 0xffffffffU) break;
    VARVE_TRY_ASSIGN(at, cursor.seek(meta::object_key(series, (std::uint64_t{birth} + 1) << 32)));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<maintain::ManifestWriter>> RepositoryImpl::begin_manifest(
    const catalog::VersionRecord& record, std::uint64_t objects) {
  VARVE_TRY_ASSIGN(auto manifest, ManifestWriter::begin(*files_, series_directory(record.series),
                                                        record.series, record.number));
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY(manifest->add_objects(txn, objects, false));
  VARVE_TRY(manifest->sync());
  return manifest;
}

// Writes the labels. The commit is already done, so a failure is only logged. The next change or
// opening tries again. Until then, a rebuilt catalog would lack this change.
void RepositoryImpl::sync_labels(SeriesId series) {
  const auto write = [&]() -> Result<void> {
    const std::lock_guard lock(labels_mutex_);
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(
        const auto labels,
        maintain::encode_labels(txn, series, format::encode_superblock(superblock_), {}));
    return maintain::write_labels(*files_, series_directory(series), labels);
  };
  const auto written = write();
  if (!written) {
    base::log(base::LogLevel::kWarning,
              fmt::format("the labels of series {} are not up to date: {}",
                          static_cast<std::uint32_t>(series), written.error().message()));
  }
}

void RepositoryImpl::sync_all_labels() {
  const auto all = series();
  if (!all) return;
  for (const auto& info : *all) sync_labels(info.id);
}

// Refuses to write with a catalog restored from a copy: Varve would mistake data newer than the
// catalog for leftovers of a crash, and remove it.
Result<void> RepositoryImpl::check_catalog_age() {
  std::string id;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(const auto known,
                     txn.get(meta::catalog::kSettings, maintain::kCatalogIdSetting));
    if (known) id = *known;
    VARVE_TRY_ASSIGN(const bool older, maintain::is_older_catalog(*files_, path_, txn));
    if (older) return older_catalog(path_);
  }
  if (!id.empty()) return {};
  std::array<unsigned char, 16> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    return Error(ErrorCode::kIo, "no random numbers for the catalog's id", EIO);
  }
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(txn.put(meta::catalog::kSettings, maintain::kCatalogIdSetting,
                    base::as_text(std::as_bytes(std::span(random)))));
  return txn.commit();
}

// Writes a manifest again after a change to the lock. The labels already have the lock; the
// manifest keeps it if both the catalog and the labels are lost. A failure leaves the old manifest.
void RepositoryImpl::rewrite_manifest(const catalog::VersionRecord& record) {
  const auto write = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(auto manifest, begin_manifest(record, kAllObjects));
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    return manifest->commit(txn);
  };
  const auto written = write();
  if (!written) {
    base::log(base::LogLevel::kWarning,
              fmt::format("the manifest of {} does not have its lock, only the catalog and the "
                          "labels do: {}",
                          record.name, written.error().message()));
  }
}

// Writes the manifests that an earlier release or a crash left out, and removes unused ones. Called
// at the opening.
Result<void> RepositoryImpl::complete_manifests() {
  VARVE_TRY_ASSIGN(const auto all, series());
  for (const auto& info : all) {
    auto done = complete_manifests_of(info.id);
    // A failure is only logged: the repository works without manifests, and deletions must work on
    // a full disk.
    if (!done) base::log(base::LogLevel::kWarning, "manifests: " + done.error().message());
  }
  return {};
}

Result<void> RepositoryImpl::complete_manifests_of(SeriesId series) {
  const auto directory = series_directory(series);
  const auto labels = maintain::read_labels(*files_, directory, series);
  VARVE_TRY_ASSIGN(const auto present, maintain::list_manifests(*files_, directory));
  const auto has = [&](VersionNumber number) {
    return std::any_of(present.begin(), present.end(),
                       [&](const auto& file) { return file.number == number; });
  };
  std::vector<catalog::VersionRecord> records;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
    VARVE_TRY_ASSIGN(records, catalog::list_versions(txn, series));
    std::set<VersionNumber> wanted;
    for (const auto& record : records) {
      if (record.state == VersionState::kSealed) wanted.insert(record.number);
    }
    if (!labels) {
      // Possibly no manifest was ever written; then deleted versions may have left shared objects.
      std::set<VersionNumber> births;
      VARVE_TRY(collect_births(txn, meta::catalog::kNodes, series, births));
      VARVE_TRY(collect_births(txn, meta::catalog::kRecipes, series, births));
      for (const auto birth : births) {
        const auto* user = next_user(records, {}, birth);
        if (user == nullptr || wanted.contains(birth)) continue;
        const auto refers = catalog::refers_to_birth(*objects_of(series), user->root.child, birth);
        if (!refers || *refers) wanted.insert(birth);
      }
    }
    for (const auto number : wanted) {
      if (has(number)) continue;
      VARVE_TRY_ASSIGN(auto manifest, ManifestWriter::begin(*files_, directory, series, number));
      VARVE_TRY(manifest->add_objects(txn, kAllObjects, true));
      VARVE_TRY(manifest->commit(txn));
    }
    // A seal in another series changes the clock's record. These labels get it at their next
    // change.
    std::string clock;
    if (labels) clock = labels->setting(catalog::kClockSetting);
    VARVE_TRY_ASSIGN(
        const auto fresh,
        maintain::encode_labels(txn, series, format::encode_superblock(superblock_), {}, &clock));
    if (labels && maintain::same_labels(fresh, labels->image)) return {};
  }
  VARVE_TRY_ASSIGN(const auto dead, dead_manifests(series, {}));
  drop_manifests(series, dead);
  return {};
}

std::unique_ptr<catalog::ObjectReader> RepositoryImpl::objects_of(SeriesId series) {
  return std::make_unique<catalog::ObjectReader>(catalog_, series);
}

// Finds unused manifests. A manifest stays while a version refers to an object in it, or may do so.
Result<RepositoryImpl::DeadManifests> RepositoryImpl::dead_manifests(
    SeriesId series, const std::vector<catalog::VersionRecord>& gone, const OpenChunks& open) {
  DeadManifests dead;
  const auto directory = series_directory(series);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series));
  VARVE_TRY_ASSIGN(const auto present, maintain::list_manifests(*files_, directory));
  const auto objects = objects_of(series);
  for (const auto& file : present) {
    if (is_sealed(records, file.number) && !is_sealed(gone, file.number)) continue;
    const auto* user = next_user(records, gone, file.number);
    if (user != nullptr) {
      const auto refers = catalog::refers_to_birth(*objects, user->root.child, file.number);
      if (!refers || *refers) continue;
    }
    dead.numbers.push_back(file.number);
    dead.bytes += file.bytes;
  }
  std::set<VersionNumber> without;
  for (const auto& record : gone) without.insert(record.number);
  VARVE_TRY_ASSIGN(const auto after,
                   maintain::encode_labels(txn, series, format::encode_superblock(superblock_),
                                           without, nullptr, &open));
  const auto path = directory + "/" + maintain::kLabelsName;
  VARVE_TRY_ASSIGN(const bool labelled, files_->exists(path));
  if (!labelled) return dead;
  VARVE_TRY_ASSIGN(const auto before, files_->tree_bytes(path));
  dead.bytes += before - std::min<std::uint64_t>(before, after.size());
  return dead;
}

void RepositoryImpl::drop_manifests(SeriesId series, const DeadManifests& dead) {
  for (const auto number : dead.numbers) {
    const auto removed = files_->remove(maintain::manifest_path(series_directory(series), number));
    if (!removed && removed.error().code() != ErrorCode::kNotFound) {
      base::log(base::LogLevel::kWarning, removed.error().message());
    }
  }
  sync_labels(series);  // Last: labels that match the catalog mean that nothing is left to remove.
}

Result<void> RepositoryImpl::check_staging(const catalog::VersionRecord& record) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog_));
  VARVE_TRY_ASSIGN(const bool lost, maintain::is_staging_lost(*files_, path_, txn, record));
  if (!lost) return {};
  return Error(ErrorCode::kCorrupt,
               staging_directory(record.series, record.number) +
                   " is missing, so what the open version " + record.name +
                   " held is lost; `varve repair` drops it",
               EIO);
}

}  // namespace varve::repo
