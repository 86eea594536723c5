// SPDX-License-Identifier: Apache-2.0
// Names versions, rebuilds the clock's record and the sequence numbers, and reports lost locks.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "catalog/clock_record.h"
#include "catalog/layout_records.h"
#include "catalog/pool_records.h"
#include "catalog/sequence_record.h"
#include "catalog/series_sequences.h"
#include "maintain/catalog_rebuilder.h"
#include "meta/schema.h"

namespace varve::maintain {

namespace {

constexpr std::size_t kReplacedCatalogsMax = 64;

}  // namespace

std::string CatalogRebuilder::name_of(VersionNumber number) const {
  const auto it = versions_.find(number);
  const auto version = it != versions_.end() && it->second.record
                           ? it->second.record->name
                           : fmt::format("version {}", static_cast<std::uint32_t>(number));
  return (owner_ ? owner_->name : std::string("?")) + "/" + version;
}

// Stores the highest clock mark. Each series' labels have the mark of the time of writing.
Result<void> CatalogRebuilder::merge_clock(meta::WriteTxn& txn, std::string_view value) {
  const auto record = catalog::decode_clock_record(value);
  if (!record) return {};
  VARVE_TRY_ASSIGN(const auto known, txn.get(meta::catalog::kSettings, catalog::kClockSetting));
  if (known) {
    VARVE_TRY_ASSIGN(const auto other, catalog::decode_clock_record(*known));
    if (other.mark_seconds >= record->mark_seconds) return {};
  }
  return catalog::put_clock_record(txn, {record->mark_seconds, 0});
}

// Stores the highest sequence number: the labels of the last change have the highest number (O43).
Result<void> CatalogRebuilder::merge_sequence(meta::WriteTxn& txn, std::string_view value) {
  const auto sequence = catalog::decode_sequence(value);
  if (!sequence) return {};
  VARVE_TRY_ASSIGN(const auto known, catalog::find_sequence(txn));
  return known >= *sequence ? Result<void>() : catalog::put_sequence(txn, *sequence);
}

// Labels with the same number were written without a change in between. Labels written by an
// interrupted repair have fewer facts than labels of the last change.
void CatalogRebuilder::note_sequences(SeriesId series, const Labels& labels) {
  const auto number = labels.sequence();
  of_labels_[series] = number;
  if (number > newest_) named_.clear();
  newest_ = std::max(newest_, number);
  const auto named =
      catalog::decode_series_sequences(labels.setting(catalog::kSeriesSequencesSetting));
  if (number < newest_ || !named) return;
  for (const auto& [other, least] : *named) named_[other] = std::max(named_[other], least);
}

Result<void> CatalogRebuilder::merge_setting(meta::WriteTxn& txn, std::string_view key,
                                             std::string_view value) {
  if (key == catalog::kClockSetting) return merge_clock(txn, value);
  if (key == catalog::kSequenceSetting) return merge_sequence(txn, value);
  if (key == catalog::kPoolBirthSetting) {
    note_next_birth(value);
    return {};
  }
  // See put_series_sequences() and put_replaced().
  if (key == catalog::kSeriesSequencesSetting || key == kReplacedCatalogsSetting) return {};
  return txn.put(meta::catalog::kSettings, key, value);
}

// Collects the ids of the catalogs whose labels were read, and the ids of replaced catalogs listed
// in the labels.
void CatalogRebuilder::note_replaced(const Labels& labels) {
  auto ids = ids_of_catalogs(labels.setting(kReplacedCatalogsSetting));
  if (labels.catalog_id.size() == kCatalogIdBytes) ids.push_back(labels.catalog_id);
  for (auto& id : ids) {
    if (std::ranges::find(replaced_, id) == replaced_.end()) replaced_.push_back(std::move(id));
  }
}

Result<void> CatalogRebuilder::put_replaced() {
  const auto first = replaced_.size() - std::min(replaced_.size(), kReplacedCatalogsMax);
  std::string ids;
  for (auto i = first; i < replaced_.size(); ++i) ids += replaced_[i];
  if (ids.empty()) return {};
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(txn.put(meta::catalog::kSettings, kReplacedCatalogsSetting, ids));
  return txn.commit();
}

Result<void> CatalogRebuilder::put_series_sequences() {
  if (newest_ == 0) return {};
  const auto newest =
      fmt::format("the newest labels of the repository (sequence number {})", newest_);
  for (const auto& [series, least] : named_) {
    const auto directory = series_directory(series);
    const auto name = names_of_series_.find(series);
    const auto own = of_labels_.find(series);
    if (name == names_of_series_.end()) {
      problem(
          fmt::format("{}: the series is missing with all its versions and locks, but {} name "
                      "it, with changes up to the number {}; if you have a copy of the folder, "
                      "put it back and repair with --rebuild-catalog",
                      directory, newest, least));
    } else if (own != of_labels_.end() && own->second < least) {
      problem(
          fmt::format("{}/{}: the labels of the series {} are older than they must be: they "
                      "have the sequence number {}, and {} say that the series changed up to "
                      "the number {}. Versions and locks of the changes in between may be "
                      "missing; if you have a copy of the folder, put it back and repair with "
                      "--rebuild-catalog",
                      directory, kLabelsName, name->second, own->second, newest, least));
    }
  }
  catalog::SeriesSequences present;
  for (const auto& [series, name] : names_of_series_) present[series] = of_labels_[series];
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog_));
  VARVE_TRY(catalog::put_series_sequences(txn, std::move(present)));
  return txn.commit();
}

// Reports a lost lock. A lock is lost only with the version, or if the version's record is damaged.
void CatalogRebuilder::report_lost_lock(VersionNumber number, const Version& version) {
  if (!version.retention) return;
  const auto retention = catalog::decode_retention(*version.retention);
  if (!retention) {
    problem(name_of(number) + ": if it was locked, the lock is lost; lock it again");
  } else if (retention->locked_until != Timestamp{}) {
    problem(fmt::format("{}: it was locked until {}; the lock is lost", name_of(number),
                        base::local_time_text(retention->locked_until)));
  }
}

// Deleted versions keep their manifests while later versions refer to the pages.
void CatalogRebuilder::note_deleted(VersionNumber number, const Version& version) {
  if (!version.record || version.record->state != VersionState::kSealed) return;
  const bool is_unknown = choices_.listed.empty() && !version.is_removed &&
                          labels_found_ == LabelsFound::kNotingDeletions;
  if (!is_unknown) {
    report_.notes.push_back(
        name_of(number) +
        " counts as deleted: it has a manifest, but the labels of the series do not list it");
    return;
  }
  problem(name_of(number) +
          ": the labels of the series neither list this version nor note its deletion, and a part "
          "of its data is missing");
  report_.left_out_in_use.push_back(manifest_path(series_directory(owner_->id), number));
}

}  // namespace varve::maintain
