// SPDX-License-Identifier: Apache-2.0
#include "layout/stream_order.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "catalog/dir_tree.h"

namespace varve::layout {

StreamWalk walk_tree(catalog::ObjectReader& objects, format::DirEntry root) {
  return [&objects, root = std::move(root)](
             const std::function<bool(const base::IdRun&)>& visit) -> Result<void> {
    catalog::TreeWalker walker(objects, root);
    while (true) {
      VARVE_TRY_ASSIGN(const auto found, walker.next());
      if (!found) return {};
      const auto& entry = *found->entry;
      if ((entry.mode & S_IFMT) != S_IFREG || entry.size == 0) continue;
      std::shared_ptr<const format::Recipe> stored;
      if (!entry.recipe) {
        VARVE_TRY_ASSIGN(stored, objects.recipe(entry.recipe_id, entry.size));
      }
      for (const auto& run : (entry.recipe ? *entry.recipe : *stored).runs) {
        if (!run.is_hole() && !visit({run.first, run.count})) return {};
      }
    }
  };
}

std::vector<base::IdRun> in_stream_order(const base::IdRuns& chunks, const StreamWalk& stream,
                                         const std::function<bool()>& stop) {
  std::vector<base::IdRun> order;
  std::vector<bool> taken(chunks.size());
  std::uint64_t left = chunks.size();
  const auto& runs = chunks.runs();
  const auto take = [&](std::uint64_t first, std::uint64_t count) {
    const std::uint64_t rank = *chunks.rank(ChunkId{first});
    for (std::uint64_t i = 0; i < count; ++i) {
      if (taken[rank + i]) continue;
      taken[rank + i] = true;
      --left;
      base::append_run(order, {ChunkId{first + i}, 1});
    }
  };
  std::uint64_t visited = 0;
  auto walked = stream([&](const base::IdRun& run) {
    const std::uint64_t end = run.first.value + run.count;
    auto at = std::upper_bound(runs.begin(), runs.end(), run.first,
                               [](ChunkId id, const base::IdRun& r) { return id < r.first; });
    if (at != runs.begin()) --at;
    for (; at != runs.end() && at->first < ChunkId{end}; ++at) {
      const std::uint64_t from = std::max(at->first.value, run.first.value);
      const std::uint64_t to = std::min(at->first.value + at->count, end);
      if (from < to) take(from, to - from);
    }
    constexpr std::uint64_t kRunsBetweenLooks = 4096;
    return left != 0 && (++visited % kRunsBetweenLooks != 0 || !stop());
  });
  if (!walked) base::log(base::LogLevel::kWarning, "arranging: " + walked.error().message());
  for (const auto& run : runs) {
    if (left == 0) break;
    take(run.first.value, run.count);
  }
  return order;
}

}  // namespace varve::layout
