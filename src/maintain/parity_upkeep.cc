// SPDX-License-Identifier: Apache-2.0
#include "maintain/parity_upkeep.h"

#include <vector>

#include "base/log.h"
#include "catalog/layout_records.h"
#include "catalog/series_catalog.h"
#include "maintain/settled_files.h"
#include "parity/upkeep.h"

namespace varve::maintain {

namespace {

constexpr int kRoundsMax = 4;

}  // namespace

Result<ParityUpkeep> keep_parity(const meta::Env& catalog, store::SegmentStore& store,
                                 SeriesId series, const std::function<bool(std::uint64_t)>& pass) {
  const auto scan = [&]() -> Result<std::vector<parity::DataFile>> {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    return settled_files(txn, series);
  };
  parity::KeepOptions options;
  options.pass = pass;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(catalog));
    VARVE_TRY_ASSIGN(const auto settings, catalog::find_arrange_settings(txn));
    options.percent = settings.parity_percent;
  }
  ParityUpkeep done;
  for (int round = 1;; ++round) {
    VARVE_TRY_ASSIGN(const auto present, scan());
    const auto kept = parity::keep_parity(store, catalog::store_of(series), present, options);
    if (!kept) {
      base::log(base::LogLevel::kWarning, "parity: " + kept.error().message());
      done.finished = true;
      return done;
    }
    done.bytes_read += kept->bytes_read;
    done.bytes_written += kept->bytes_written;
    if (!kept->finished) return done;
    if (kept->damaged.empty()) {
      done.finished = true;
      return done;
    }
    // Files cut or removed meanwhile look damaged.
    VARVE_TRY_ASSIGN(const auto now, scan());
    if (now != present && round < kRoundsMax) continue;
    for (const auto segment : kept->damaged) {
      base::log(base::LogLevel::kWarning,
                "parity: " + store.describe(segment) +
                    " is damaged, so its parity does not change; run `varve repair`");
    }
    done.finished = true;
    return done;
  }
}

}  // namespace varve::maintain
