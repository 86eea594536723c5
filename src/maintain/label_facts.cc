// SPDX-License-Identifier: Apache-2.0
#include "maintain/label_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/clock_record.h"
#include "catalog/pool_records.h"
#include "catalog/sequence_record.h"
#include "meta/schema.h"

namespace varve::maintain {

namespace {

constexpr std::size_t kReplacedCatalogsMax = 64;

// Stores the highest clock mark. Each series' labels have the mark of the time of writing.
Result<void> merge_clock(meta::WriteTxn& txn, std::string_view value) {
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
Result<void> merge_sequence(meta::WriteTxn& txn, std::string_view value) {
  const auto sequence = catalog::decode_sequence(value);
  if (!sequence) return {};
  VARVE_TRY_ASSIGN(const auto known, catalog::find_sequence(txn));
  return known >= *sequence ? Result<void>() : catalog::put_sequence(txn, *sequence);
}

}  // namespace

Result<void> merge_label_setting(meta::WriteTxn& txn, std::string_view key,
                                 std::string_view value) {
  if (key == catalog::kClockSetting) return merge_clock(txn, value);
  if (key == catalog::kSequenceSetting) return merge_sequence(txn, value);
  if (key == catalog::kPoolBirthSetting || key == catalog::kSeriesSequencesSetting ||
      key == kReplacedCatalogsSetting) {
    return {};
  }
  return txn.put(meta::catalog::kSettings, key, value);
}

// Labels with the same number were written without a change in between. Labels written by an
// interrupted repair have fewer facts than labels of the last change.
void LabelFacts::add(SeriesId series, const Labels& labels) {
  auto ids = ids_of_catalogs(labels.setting(kReplacedCatalogsSetting));
  if (labels.catalog_id.size() == kCatalogIdBytes) ids.push_back(labels.catalog_id);
  for (auto& id : ids) {
    if (std::ranges::find(replaced_, id) == replaced_.end()) replaced_.push_back(std::move(id));
  }
  const auto number = labels.sequence();
  sequences_[series] = number;
  if (number > newest_) named_.clear();
  newest_ = std::max(newest_, number);
  const auto named =
      catalog::decode_series_sequences(labels.setting(catalog::kSeriesSequencesSetting));
  if (number < newest_ || !named) return;
  for (const auto& [other, least] : *named) named_[other] = std::max(named_[other], least);
}

bool LabelFacts::are_newest(SeriesId series) const {
  const auto own = sequences_.find(series);
  return own != sequences_.end() && own->second >= newest_;
}

std::vector<std::string> LabelFacts::lost_series(
    const std::map<SeriesId, std::string>& names,
    const std::function<std::string(SeriesId)>& directory) const {
  std::vector<std::string> lost;
  if (newest_ == 0) return lost;
  const auto newest =
      fmt::format("the newest labels of the repository (sequence number {})", newest_);
  for (const auto& [series, least] : named_) {
    const auto name = names.find(series);
    const auto own = sequences_.find(series);
    if (name == names.end()) {
      lost.push_back(
          fmt::format("{}: the series is missing with all its versions and locks, but {} name "
                      "it, with changes up to the number {}; if you have a copy of the folder, "
                      "put it back and repair with --rebuild-catalog",
                      directory(series), newest, least));
    } else if (own != sequences_.end() && own->second < least) {
      lost.push_back(
          fmt::format("{}/{}: the labels of the series {} are older than they must be: they "
                      "have the sequence number {}, and {} say that the series changed up to "
                      "the number {}. Versions and locks of the changes in between may be "
                      "missing; if you have a copy of the folder, put it back and repair with "
                      "--rebuild-catalog",
                      directory(series), kLabelsName, name->second, own->second, newest, least));
    }
  }
  return lost;
}

Result<void> LabelFacts::put(const meta::Env& catalog,
                             const std::map<SeriesId, std::string>& names) const {
  const auto first = replaced_.size() - std::min(replaced_.size(), kReplacedCatalogsMax);
  std::string ids;
  for (auto i = first; i < replaced_.size(); ++i) ids += replaced_[i];
  if (newest_ == 0 && ids.empty()) return {};
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(catalog));
  if (newest_ != 0) {
    catalog::SeriesSequences present;
    for (const auto& [series, name] : names) {
      const auto own = sequences_.find(series);
      present[series] = own != sequences_.end() ? own->second : 0;
    }
    VARVE_TRY(catalog::put_series_sequences(txn, std::move(present)));
  }
  if (!ids.empty()) {
    VARVE_TRY(txn.put(meta::catalog::kSettings, kReplacedCatalogsSetting, ids));
  }
  return txn.commit();
}

}  // namespace varve::maintain
