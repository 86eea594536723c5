// SPDX-License-Identifier: Apache-2.0
// Keeps manifests and labels up to date with the catalog, as sources for rebuilding the catalog.
#include "series/manifests.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "catalog/object_store.h"
#include "maintain/manifest_file.h"
#include "meta/schema.h"
#include "series/manifest_users.h"

namespace varve::series {

namespace {

using maintain::ManifestWriter;

constexpr std::uint64_t kAllObjects = std::uint64_t{1} << 32;

// Collects the births of objects in a table, ascending.
Result<void> collect_births(const meta::Txn& txn, meta::TableIndex table, SeriesId series,
                            std::set<VersionNumber>& births) {
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, table));
  const auto prefix = meta::series_key(series);
  VARVE_TRY_ASSIGN(auto at, cursor.seek(prefix));
  while (at && at->key.starts_with(prefix) && at->key.size() == 12) {
    const auto of_birth = std::string(at->key.substr(0, 8));
    births.insert(static_cast<VersionNumber>(base::load_be32(of_birth.substr(4))));
    VARVE_TRY_ASSIGN(at, cursor.seek_behind(of_birth));
  }
  return {};
}

}  // namespace

OpenChunks open_chunks_without(const OpenChunks& before, const base::IdRuns& dead) {
  OpenChunks after;
  for (const auto& [number, chunks] : before) {
    auto rest = chunks.subtract(dead);
    if (rest.size() != chunks.size()) after.emplace(number, std::move(rest));
  }
  return after;
}

Result<std::unique_ptr<maintain::ManifestWriter>> Manifests::begin(
    const catalog::VersionRecord& record, std::uint64_t objects) {
  VARVE_TRY_ASSIGN(auto manifest,
                   ManifestWriter::begin(*parts_.files, parts_.codecs->frames(), parts_.directory(),
                                         parts_.id, record.number));
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY(manifest->add_objects(txn, objects, false));
  VARVE_TRY(manifest->sync());
  return manifest;
}

// Writes a manifest again after a change to the lock. The manifest keeps the lock if both the
// catalog and the labels are lost. A failure leaves the old manifest.
void Manifests::rewrite(const catalog::VersionRecord& record) {
  const std::lock_guard lock(mutex_);
  const auto written = write_again(record);
  left_.erase(record.number);
  if (written) return;
  left_.insert(record.number);
  parts_.host->left_behind();
  base::log(base::LogLevel::kWarning, fmt::format("the manifest of {} does not have its lock: {}",
                                                  record.name, written.error().message()));
}

Result<void> Manifests::write_again(const catalog::VersionRecord& record) {
  VARVE_TRY_ASSIGN(auto manifest, begin(record, kAllObjects));
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  return manifest->commit(txn);
}

Result<void> Manifests::write_left() {
  const std::lock_guard lock(mutex_);
  VARVE_TRY(labels_.write_left());
  while (!left_.empty()) {
    const auto number = *left_.begin();
    std::optional<catalog::VersionRecord> record;
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
      VARVE_TRY_ASSIGN(record, catalog::find_version(txn, parts_.id, number));
    }
    if (record) VARVE_TRY(parts_.with_reserve([&] { return write_again(*record); }));
    left_.erase(number);
  }
  // Not tried again here: a manifest of a version that is just sealed would seem unused.
  return lacked_space_ ? Result<void>(*lacked_space_) : Result<void>();
}

Result<void> Manifests::complete() {
  const std::lock_guard lock(mutex_);
  auto done = write_missing();
  lacked_space_.reset();
  if (!done && done.error().code() == ErrorCode::kNoSpace) lacked_space_ = done.error();
  return done;
}

// Writes manifests left out by an earlier release or a crash, and removes unused manifests.
Result<void> Manifests::write_missing() {
  const auto directory = parts_.directory();
  const auto labels =
      maintain::read_labels(*parts_.files, parts_.codecs->frames(), directory, parts_.id);
  VARVE_TRY_ASSIGN(const auto present, maintain::list_manifests(*parts_.files, directory));
  const auto has = [&](VersionNumber number) {
    return std::any_of(present.begin(), present.end(),
                       [&](const auto& file) { return file.number == number; });
  };
  std::vector<catalog::VersionRecord> records;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
    VARVE_TRY_ASSIGN(records, catalog::list_versions(txn, parts_.id));
    std::set<VersionNumber> wanted;
    for (const auto& record : records) {
      if (record.state == VersionState::kSealed) wanted.insert(record.number);
    }
    if (!labels || !labels->notes_removed) {
      // Possibly no manifest was ever written; then deleted versions may have left shared objects.
      std::set<VersionNumber> births;
      catalog::ObjectReader objects(*parts_.catalog, parts_.id);
      VARVE_TRY(collect_births(txn, meta::catalog::kNodes, parts_.id, births));
      VARVE_TRY(collect_births(txn, meta::catalog::kRecipes, parts_.id, births));
      std::erase_if(births, [&](VersionNumber birth) { return wanted.contains(birth); });
      wanted.merge(ManifestUsers(objects, records, {}).used(births));
    }
    for (const auto number : wanted) {
      if (has(number)) continue;
      VARVE_TRY_ASSIGN(auto manifest, ManifestWriter::begin(*parts_.files, parts_.codecs->frames(),
                                                            directory, parts_.id, number));
      VARVE_TRY(manifest->add_objects(txn, kAllObjects, true));
      VARVE_TRY(manifest->commit(txn));
    }
    if (labels) {
      VARVE_TRY_ASSIGN(const bool agree, labels_.agree(txn, *labels));
      if (agree) return {};
    }
  }
  VARVE_TRY_ASSIGN(const auto dead_now, dead({}));
  drop(dead_now);
  return {};
}

// Finds unused manifests. A manifest stays while a version refers to an object in it, or may do so.
Result<DeadManifests> Manifests::dead(const std::vector<catalog::VersionRecord>& gone,
                                      const OpenChunks& open) {
  DeadManifests found;
  const auto directory = parts_.directory();
  maintain::LabelsView view;
  view.open_chunks = &open;
  for (const auto& record : gone) view.without.insert(record.number);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, parts_.id));
  VARVE_TRY_ASSIGN(const auto present, maintain::list_manifests(*parts_.files, directory));
  catalog::ObjectReader objects(*parts_.catalog, parts_.id);
  const ManifestUsers users(objects, records, view.without);
  std::set<VersionNumber> candidates;
  for (const auto& file : present) {
    if (!users.is_sealed(file.number)) candidates.insert(file.number);
  }
  const auto used = users.used(candidates);
  for (const auto& file : present) {
    if (!candidates.contains(file.number) || used.contains(file.number)) continue;
    found.numbers.push_back(file.number);
    found.bytes += file.bytes;
  }
  // O63: the labels note the deletions of which a manifest stays.
  auto removed = used;
  for (const auto& record : records) {
    if (!view.without.contains(record.number)) removed.erase(record.number);
  }
  view.removed = &removed;
  VARVE_TRY_ASSIGN(const auto after,
                   maintain::encode_labels(txn, parts_.codecs->frames(), parts_.id,
                                           parts_.host->superblock(), view));
  const auto path = directory + "/" + maintain::kLabelsName;
  VARVE_TRY_ASSIGN(const bool labelled, parts_.files->exists(path));
  if (!labelled) return found;
  VARVE_TRY_ASSIGN(const auto before, parts_.files->tree_bytes(path));
  found.bytes += before - std::min(before, parts_.files->stored_bytes(path, after.size()));
  return found;
}

bool Manifests::drop(const DeadManifests& dead) {
  for (const auto number : dead.numbers) {
    const auto removed = parts_.files->remove(maintain::manifest_path(parts_.directory(), number));
    if (!removed && removed.error().code() != ErrorCode::kNotFound) {
      parts_.host->left_behind();
      base::log(base::LogLevel::kWarning, removed.error().message());
    }
  }
  // Last: labels that match the catalog mean that nothing is left to remove.
  return labels_.rewrite();
}

}  // namespace varve::series
