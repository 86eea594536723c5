// SPDX-License-Identifier: Apache-2.0
#include "series/series_state.h"

#include <utility>

#include "base/log.h"
#include "catalog/series_catalog.h"
#include "series/usage.h"
#include "version/open_version.h"

namespace varve::series {

SeriesState::SeriesState(const SeriesParts& its_parts)
    : parts(its_parts), records(*parts.catalog, parts.id), manifests(parts) {}

Result<SeriesLoaded*> SeriesState::load() {
  const std::lock_guard lock(load_mutex);
  if (!opened) {
    VARVE_TRY(records.owner());  // Opening makes the folder: not after the series was removed.
    VARVE_TRY_ASSIGN(auto store, LineageStore::open(parts));
    opened = std::make_unique<SeriesLoaded>(parts, manifests, readers, std::move(store));
  }
  return opened.get();
}

SeriesLoaded* SeriesState::loaded() {
  const std::lock_guard lock(load_mutex);
  return opened.get();
}

Result<void> SeriesState::measure_open(catalog::VersionRecord& record) {
  if (const auto measured = measure_version(parts, record); !measured) {
    base::log(base::LogLevel::kDebug, measured.error().message());
  }
  VARVE_TRY_ASSIGN(auto* const use, load());
  // A seal or a deletion may hold the mutex for long. Only its holder may open the overlay.
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock.owns_lock()) return {};
  if (use->open.version() && use->open.version()->info().number == record.number) {
    record.entries = use->open.version()->entries();
    return {};
  }
  const auto known = use->open.stored_entries(record);
  if (known) {
    record.entries = *known;
  } else if (record.base != VersionNumber{}) {
    if (const auto base = records.find(record.base)) record.entries = base->entries;
  }
  return {};
}

Result<void> SeriesState::end_present_version(SeriesLoaded& use) {
  VARVE_TRY_ASSIGN(const auto all, records.all());
  for (const auto& record : all) {
    if (record.state != VersionState::kOpen) continue;
    if (record.unfinished) {
      VARVE_TRY(use.open.drop_unfinished(record));
      continue;
    }
    VARVE_TRY(use.open.check_may_end(record));
    SealRequest request;
    request.name = record.name;
    auto sealed = use.seal.run(record, request);
    if (!sealed) return std::move(sealed).error();
    base::log(base::LogLevel::kInfo,
              sealed->outcome.info.series_name + "/" + sealed->outcome.info.name +
                  " was sealed, because another version of the series is opened");
  }
  return {};
}

}  // namespace varve::series
