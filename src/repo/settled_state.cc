// SPDX-License-Identifier: Apache-2.0
#include "repo/settled_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/coding.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "catalog/name_table.h"
#include "catalog/series_catalog.h"
#include "maintain/catalog_age.h"
#include "maintain/manifest_file.h"
#include "maintain/undeleted_versions.h"
#include "meta/schema.h"
#include "store/repository_names.h"

namespace varve::repo {

namespace {

Error older_catalog(const std::string& catalog) {
  return {ErrorCode::kCorrupt,
          catalog +
              " is older than the rest of the repository: restore the newest copy, or run `varve "
              "repair`, which rebuilds it from the manifests"};
}

Error other_catalog(const maintain::MixedFile& file) {
  return {ErrorCode::kCorrupt,
          fmt::format("the catalog is of another state than the rest of the repository: {} ({}): "
                      "{}; complete the copy of one state over the other, or run `varve repair`",
                      file.versions, file.path, file.fault)};
}

// A crash leaves staging folders of versions no longer open, and unfinished copies of older
// versions. The next open version of a series frees the chunks of an unfinished copy.
Result<void> remove_leftovers(const meta::Env& catalog, io::FileSystem& files,
                              const store::RepositoryPaths& paths) {
  std::vector<std::string> wanted;
  std::vector<catalog::VersionRecord> unfinished;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(const auto all, catalog::list_series(txn));
    for (const auto& series : all) {
      VARVE_TRY_ASSIGN(const auto records, catalog::list_versions(txn, series.id));
      for (const auto& record : records) {
        if (record.unfinished) {
          unfinished.push_back(record);
        } else if (record.state == VersionState::kOpen) {
          wanted.push_back(store::staging_name(series.id, record.number));
        }
      }
    }
  }
  if (!unfinished.empty()) {
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
    for (const auto& record : unfinished) {
      VARVE_TRY(catalog::erase_version(txn, record.series, record.number));
    }
    VARVE_TRY(txn.commit());
  }
  VARVE_TRY(files.make_durable_directory(paths.all_staging()));
  VARVE_TRY_ASSIGN(const auto names, files.list(paths.all_staging()));
  for (const auto& name : names) {
    const bool is_ours = store::parse_staging_name(name).has_value();
    if (!is_ours || std::find(wanted.begin(), wanted.end(), name) != wanted.end()) continue;
    VARVE_TRY(store::remove_folder(files, paths.all_staging() + "/" + name,
                                   store::FolderKind::kOpenVersion));
  }
  return {};
}

// Makes the table of names in a catalog of an earlier release. Without the table, a lookup reads
// all records.
bool complete_names(const meta::Env& catalog) {
  const auto work = [&]() -> Result<void> {
    {
      VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
      VARVE_TRY_ASSIGN(const bool complete, catalog::has_all_names(txn));
      if (complete) return {};
    }
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
    VARVE_TRY(catalog::rebuild_names(txn));
    return txn.commit();
  };
  const auto done = work();
  if (!done) base::log(base::LogLevel::kWarning, "the table of names: " + done.error().message());
  return done.has_value();
}

}  // namespace

Result<void> compare_catalog(io::FileSystem& files, const format::DataCodecs& codecs,
                             const store::StoreOpener& open, const std::string& root,
                             const meta::Env& catalog, const std::function<bool()>& is_settled) {
  VARVE_TRY_ASSIGN(const auto age, maintain::age_of_catalog(files, codecs.frames(), root, catalog));
  if (age.is_older) return older_catalog(store::RepositoryPaths(root).catalog());
  // The note may have been copied together with the catalog.
  if (age.has_labelled_versions && is_settled()) return {};
  VARVE_TRY_ASSIGN(const auto undeleted,
                   maintain::find_undeleted(files, codecs, open, root, catalog));
  return undeleted.empty() ? Result<void>() : Result<void>(other_catalog(undeleted.front()));
}

// A note counts only for the catalog's last commit. A note does not rule out an older copy of the
// catalog, because a note may be restored together with the catalog: the labels rule that out.
Result<SettledMark::Note> SettledState::read_note() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
  VARVE_TRY_ASSIGN(const auto known,
                   txn.get(meta::catalog::kSettings, maintain::kCatalogIdSetting));
  if (known) catalog_id_ = *known;
  auto note = folder_.settled.read(catalog_id_, txn.id());
  was_settled_ = note.settled;
  leaves_work_ = !note.settled;
  return note;
}

bool SettledState::has_note() const {
  const auto txn = meta::ReadTxn::begin(folder_.catalog);
  if (!txn) return false;
  const auto id = txn->get(meta::catalog::kSettings, maintain::kCatalogIdSetting);
  return id && *id && folder_.settled.read(std::string(**id), txn->id()).settled;
}

void SettledState::write_note(const std::optional<std::set<SeriesId>>& unarranged) {
  if (folder_.options.read_only || leaves_work_) return;
  const auto note = [&]() -> Result<void> {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(folder_.catalog));
    return folder_.settled.write(catalog_id_, txn.id(), unarranged);
  };
  const auto noted = note();
  if (!noted) base::log(base::LogLevel::kDebug, noted.error().message());
}

Result<bool> SettledState::complete_catalog() {
  const bool complete = complete_names(folder_.catalog);
  VARVE_TRY(remove_leftovers(folder_.catalog, *folder_.files, folder_.paths));
  return complete;
}

// Refuses to write with a catalog restored from a copy: Varve would mistake data newer than the
// catalog for leftovers of a crash, and remove it.
Result<void> SettledState::refuse_older_catalog() const {
  if (folder_.is_attached()) return {};
  return compare_catalog(*folder_.files, folder_.codecs, folder_.storage->opener(),
                         folder_.paths.root(), folder_.catalog,
                         [this] { return folder_.options.read_only ? has_note() : was_settled_; });
}

// An attached folder's catalog fits the labels, because a head names both.
Result<bool> SettledState::has_older_catalog() const {
  const auto fits = refuse_older_catalog();
  if (!fits && fits.error().code() != ErrorCode::kCorrupt) return fits.error();
  return !fits.has_value();
}

void SettledState::add_older_catalog(std::vector<Damage>& damages) const {
  const auto fits = refuse_older_catalog();
  if (fits || fits.error().code() != ErrorCode::kCorrupt) return;
  damages.insert(damages.begin(), {folder_.paths.catalog(), fits.error().message(), {}});
}

// A reader destroys nothing, so it shows the versions of the older catalog: the user may be looking
// for an older version.
void SettledState::warn_of_older_catalog() const {
  const auto fault = refuse_older_catalog();
  if (fault) return;
  base::log(base::LogLevel::kWarning,
            fault.error().code() == ErrorCode::kCorrupt
                ? "newer versions are not shown: " + fault.error().message()
                : fault.error().message());
}

Result<void> SettledState::check_catalog_age() {
  VARVE_TRY(refuse_older_catalog());
  if (!catalog_id_.empty()) return {};
  VARVE_TRY_ASSIGN(const auto random, base::random_bytes<16>());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(folder_.catalog));
  catalog_id_ = base::as_text(random);
  VARVE_TRY(txn.put(meta::catalog::kSettings, maintain::kCatalogIdSetting, catalog_id_));
  return txn.commit();
}

}  // namespace varve::repo
