// SPDX-License-Identifier: Apache-2.0
#include "catalog/series_settings.h"

#include <fmt/core.h>

#include <string>

#include "meta/schema.h"

namespace varve::catalog {

namespace {

Error damaged_settings() {
  return {ErrorCode::kCorrupt, "catalog: the settings of a series are damaged"};
}

Error unknown_setting(const std::string& what) {
  return {ErrorCode::kUnsupported, "catalog: " + what + "; use a newer Varve"};
}

// A record has a checksum, so an unknown value belongs to a newer Varve, and may be followed by
// more.
Result<Placement> get_placement(base::ByteReader& r) {
  const std::uint64_t value = r.varint();
  if (!r.ok()) return damaged_settings();
  const auto placement = static_cast<Placement>(value);
  if (value > static_cast<std::uint64_t>(Placement::kPool)) {
    return unknown_setting(fmt::format("a series has the unknown placement number {}", value));
  }
  if (const auto made = check_placement(placement); !made) {
    return unknown_setting(made.error().message());
  }
  return placement;
}

Result<Rewrite> get_rewrite(base::ByteReader& r) {
  const std::uint64_t value = r.varint();
  if (!r.ok()) return damaged_settings();
  const auto rewrite = static_cast<Rewrite>(value);
  if (value > 0xff || !check_rewrite(rewrite)) {
    return unknown_setting(
        fmt::format("a series has the unknown rewriting policy number {}", value));
  }
  return rewrite;
}

}  // namespace

bool needs_pool_feature(const SeriesSettings& settings) { return settings != SeriesSettings(); }

void put_series_settings(base::ByteWriter& w, const SeriesSettings& settings) {
  if (settings == SeriesSettings()) return;
  w.varint(static_cast<std::uint8_t>(settings.placement));
  if (settings.rewrite != Rewrite::kNone) w.varint(static_cast<std::uint8_t>(settings.rewrite));
}

Result<SeriesSettings> get_series_settings(base::ByteReader& r) {
  SeriesSettings settings;
  if (r.done()) return settings;
  VARVE_TRY_ASSIGN(settings.placement, get_placement(r));
  if (r.left() != 0) {
    VARVE_TRY_ASSIGN(settings.rewrite, get_rewrite(r));
    if (settings.rewrite == Rewrite::kNone) return damaged_settings();
  }
  if (!r.done() || settings == SeriesSettings()) return damaged_settings();
  return settings;
}

Result<SeriesSettings> find_new_series_settings(const meta::Txn& txn,
                                                const SeriesSettings& initial) {
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::catalog::kSettings, kNewSeriesSetting));
  if (!value) return initial;
  base::ByteReader r(*value);
  SeriesSettings settings;
  VARVE_TRY_ASSIGN(settings.placement, get_placement(r));
  VARVE_TRY_ASSIGN(settings.rewrite, get_rewrite(r));
  if (!r.done()) return damaged_settings();
  return settings;
}

Result<void> put_new_series_settings(meta::WriteTxn& txn, const SeriesSettings& settings,
                                     const SeriesSettings& initial) {
  if (settings == initial) return txn.erase(meta::catalog::kSettings, kNewSeriesSetting);
  std::string out;
  base::ByteWriter w(out);
  w.varint(static_cast<std::uint8_t>(settings.placement));
  w.varint(static_cast<std::uint8_t>(settings.rewrite));
  return txn.put(meta::catalog::kSettings, kNewSeriesSetting, out);
}

}  // namespace varve::catalog
