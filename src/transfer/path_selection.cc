// SPDX-License-Identifier: Apache-2.0
#include "transfer/path_selection.h"

#include <algorithm>

namespace varve::transfer {

PathSelection::PathSelection(const std::vector<std::string>& paths) : all_(paths.empty()) {
  for (const std::string& path : paths) {
    all_ = all_ || path.empty();
    wanted_.insert(path);
    for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      above_.insert(path.substr(0, at));
    }
  }
}

PathSelection::Match PathSelection::match(std::string_view path) const {
  if (all_) return Match::kWanted;
  for (std::size_t end = path.size(); end != std::string_view::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    if (wanted_.contains(path.substr(0, end))) return Match::kWanted;
  }
  return path.empty() || above_.contains(path) ? Match::kOnTheWay : Match::kNone;
}

}  // namespace varve::transfer
