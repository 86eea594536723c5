// SPDX-License-Identifier: Apache-2.0
#include "transfer/exclude_rules.h"

#include <utility>

namespace varve::transfer {

Result<ExcludeRules> ExcludeRules::parse(const std::vector<std::string>& patterns) {
  ExcludeRules rules;
  for (const std::string& text : patterns) {
    std::string_view rest = text;
    const bool includes = rest.starts_with('!');
    if (includes) rest.remove_prefix(1);
    const bool only_directories = rest.ends_with('/');
    if (only_directories) rest.remove_suffix(1);
    VARVE_TRY_ASSIGN(base::PathGlob glob, base::PathGlob::parse(rest));
    rules.rules_.push_back({includes, only_directories, std::move(glob)});
  }
  return rules;
}

bool ExcludeRules::excludes(std::string_view path, bool is_directory) const {
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule) {
    if (rule->only_directories && !is_directory) continue;
    if (rule->glob.matches(path)) return !rule->includes;
  }
  return false;
}

}  // namespace varve::transfer
