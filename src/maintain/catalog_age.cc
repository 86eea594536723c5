// SPDX-License-Identifier: Apache-2.0
#include "maintain/catalog_age.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/series_catalog.h"
#include "maintain/manifest_file.h"
#include "meta/schema.h"

namespace varve::maintain {

using format::ManifestRecord;

namespace {

// Returns the highest number of a manifest; nullopt if there is none.
std::optional<std::uint32_t> last_manifest(io::FileSystem& files, const std::string& directory) {
  const auto names = files.list(directory + "/" + kManifestFolder);
  std::optional<std::uint32_t> last;
  if (!names) return last;
  for (const auto& name : *names) {
    const auto number = number_of_manifest(name);
    if (number && (!last || *last < *number)) last = number;
  }
  return last;
}

// Returns the number after the series' last version number, as far as the labels show the number.
std::uint32_t next_number_in(const Result<Labels>& labels, SeriesId series) {
  if (!labels) return 0;
  const auto record = catalog::decode_series(series, labels->series);
  return record ? record->next_number : 0;
}

}  // namespace

Result<CatalogAge> age_of_catalog(io::FileSystem& files, const format::FrameCodec& codec,
                                  const std::string& repository_path, const meta::Env& catalog) {
  VARVE_TRY_ASSIGN(const bool any, files.exists(repository_path + "/series"));
  if (!any) return CatalogAge{.has_labelled_versions = true};
  struct Mirrored {
    std::string catalog_id;
    std::uint64_t stamp = 0;
  };
  std::vector<Mirrored> states;
  std::size_t labelled = 0;
  std::vector<std::pair<SeriesId, std::uint32_t>> given;  // The highest number of each series.
  VARVE_TRY_ASSIGN(const auto names, files.list(repository_path + "/series"));
  for (const auto& name : names) {
    const auto series = series_of_folder(name);
    if (!series) continue;
    const auto directory = std::string(repository_path).append("/series/" + name);
    const auto last = last_manifest(files, directory);
    auto labels = read_labels(files, codec, directory, *series);
    const auto of_labels = next_number_in(labels, *series);
    const auto highest = std::max(last.value_or(0), of_labels == 0 ? 0 : of_labels - 1);
    if (highest != 0) given.emplace_back(*series, highest);
    VARVE_TRY(refuse_unsupported(labels));
    if (!labels) continue;
    labelled +=
        std::ranges::count(labels->records, ManifestRecord::kVersion, &Labels::Record::what);
    if (labels->catalog_id.empty()) continue;
    states.push_back({std::move(labels->catalog_id), labels->header.stamp});
  }
  // A writer writes labels after the mirrored commit, so the snapshot of `txn` is no older.
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
  VARVE_TRY_ASSIGN(const auto known, txn.get(meta::catalog::kSettings, kCatalogIdSetting));
  const std::string id(known ? known->view() : "");
  std::vector<std::string> replaced;
  const auto is_of_this = [&](const Mirrored& state) { return state.catalog_id == id; };
  if (!std::ranges::all_of(states, is_of_this)) {
    VARVE_TRY_ASSIGN(replaced, replaced_catalogs(txn));
  }
  // A version's number is committed before the write of the manifest and the labels, whatever their
  // stamp. The folder of a series without a record was left by a crash during the series' removal.
  for (const auto& [series, last] : given) {
    const auto record = catalog::find_series(txn, series);
    if (!record || !*record || last < (*record)->next_number) continue;
    const auto newest = catalog::last_version_number(txn, series);  // The counter may be damaged.
    if (!newest || *newest < last) return CatalogAge{.is_older = true};
  }
  CatalogAge age;
  age.is_older = std::ranges::any_of(states, [&](const Mirrored& state) {
    if (is_of_this(state)) return state.stamp > txn.id();
    return std::ranges::find(replaced, state.catalog_id) == replaced.end();
  });
  VARVE_TRY_ASSIGN(const auto versions, txn.count(meta::catalog::kVersions));
  age.has_labelled_versions = versions == labelled;
  return age;
}

}  // namespace varve::maintain
