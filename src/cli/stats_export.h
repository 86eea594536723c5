// SPDX-License-Identifier: Apache-2.0
// Statistics of a repository in the text format of Prometheus.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/arrange.h"
#include "varve/check.h"
#include "varve/refused_store.h"
#include "varve/repository.h"

namespace varve::cli {

struct SeriesFigures {
  SeriesInfo series;
  std::vector<VersionInfo> versions;
  ArrangingDebt debt;
  std::vector<VersionInfo> open;
  std::optional<RefusedStore> refused{};
};

/// Figures of a whole repository.
struct RepositoryFigures {
  RepositoryStats totals;
  SpaceInfo space;
  std::vector<EarlierCheck> checks;
};

/// Returns the figures of the repository, and of each series' newest sealed version and open
/// version. `repository` is the value of a label.
[[nodiscard]] std::string prometheus_text(std::string_view repository,
                                          const RepositoryFigures& figures,
                                          const std::vector<SeriesFigures>& series);

/// Returns a label's value as the format requires: valid UTF-8, with \ " and newlines escaped.
[[nodiscard]] std::string prometheus_label(std::string_view value);
/// Appends the lines that precede the samples of a family. `type`: "gauge", for example.
void add_prometheus_header(std::string& text, std::string_view name, std::string_view help,
                           std::string_view type);

}  // namespace varve::cli
