// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "catalog/series_catalog.h"
#include "varve/types.h"

namespace varve::repo {

/// What the user sees of a version's record.
[[nodiscard]] inline VersionInfo version_info(const catalog::VersionRecord& record,
                                              const std::string& series_name) {
  VersionInfo info;
  info.series = record.series;
  info.number = record.number;
  info.series_name = series_name;
  info.name = record.name;
  info.state = record.state;
  info.opened_at = record.opened_at;
  info.sealed_at = record.sealed_at;
  info.entries = record.entries;
  info.logical_bytes = record.logical_bytes;
  info.unique_bytes = record.unique_bytes;
  info.stored_bytes = record.stored_bytes;
  return info;
}

}  // namespace varve::repo
