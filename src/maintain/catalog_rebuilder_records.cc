// SPDX-License-Identifier: Apache-2.0
// Names versions, and reports lost locks and versions missing in the labels.
#include <fmt/core.h>

#include "base/clock.h"
#include "catalog/layout_records.h"
#include "maintain/catalog_rebuilder.h"

namespace varve::maintain {

std::string CatalogRebuilder::name_of(VersionNumber number) const {
  const auto it = versions_.find(number);
  const auto version = it != versions_.end() && it->second.record
                           ? it->second.record->name
                           : fmt::format("version {}", static_cast<std::uint32_t>(number));
  return (owner_ ? owner_->name : std::string("?")) + "/" + version;
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
