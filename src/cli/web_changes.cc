// SPDX-License-Identifier: Apache-2.0
// The names that differ between two versions, for the page of `varve web`.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cli/output.h"
#include "cli/tree_compare.h"
#include "cli/web_answers.h"
#include "cli/web_values.h"

namespace varve::cli {
namespace {

constexpr std::size_t kChangesMax = 500;

Result<WebPlace> find_root(Repository& repository, web::Request request, const std::string& name) {
  const std::string* const number = request.find(name);
  if (number == nullptr) return Error(ErrorCode::kInvalid, "the query needs a number: " + name);
  request.query["version"] = *number;
  request.query["path"].clear();
  return find_web_place(repository, request);
}

}  // namespace

Result<Json> web_changes(Repository& repository, const web::Request& request) {
  constexpr std::array<const char*, 4> kKindNames{"added", "removed", "changed", "metadata"};
  VARVE_TRY_ASSIGN(const SeriesInfo series, web_series(repository, request));
  VARVE_TRY_ASSIGN(const WebPlace before, find_root(repository, request, "before"));
  VARVE_TRY_ASSIGN(const WebPlace after, find_root(repository, request, "after"));
  Json object{{"name", printable(series.name)},
              {"before", version_value(before.reader->info())},
              {"after", version_value(after.reader->info())}};
  auto& list = object["changes"] = Json::array();
  TreeComparison comparison{.path = {}, .check = DataCheck::kStored, .names_max = kWebNamesMax};
  if (const std::string* const behind = request.find("behind")) comparison.behind = *behind;
  std::size_t count = 0;
  std::size_t bytes = 0;
  const EntryAt left{*before.reader, before.entry};
  const EntryAt right{*after.reader, after.entry};
  VARVE_TRY_ASSIGN(const ComparedTrees compared,
                   compare_trees(&left, &right, comparison, [&](const TreeChange& change) {
                     Json one = found_value(change.path, change.entry);
                     one["change"] = kKindNames.at(static_cast<std::size_t>(change.kind));
                     list.push_back(std::move(one));
                     bytes += change.path.size();
                     return ++count < kChangesMax && bytes < kWebPathBytesMax;
                   }));
  object["names"] = compared.names;
  if (compared.stopped) put_place_to_go_on(object, *compared.stopped);
  return object;
}

}  // namespace varve::cli
