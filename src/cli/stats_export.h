// SPDX-License-Identifier: Apache-2.0
// Statistics of a repository in the text format of Prometheus.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "varve/arrange.h"
#include "varve/repository.h"

namespace varve::cli {

struct SeriesFigures {
  SeriesInfo series;
  std::vector<VersionInfo> versions;
  ArrangingDebt debt;
  std::vector<VersionInfo> open;
};

/// Returns the figures of the repository, and of each series' newest sealed version and open
/// version. `repository` is the value of a label.
[[nodiscard]] std::string prometheus_text(std::string_view repository,
                                          const RepositoryStats& totals,
                                          const std::vector<SeriesFigures>& series);

}  // namespace varve::cli
