// SPDX-License-Identifier: Apache-2.0
#include "version/open_references.h"

#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "base/coding.h"
#include "meta/page_check.h"
#include "meta/schema.h"

namespace varve::version {

namespace {
// Threshold for sorting and merging the runs, so that the memory depends on the result and not on
// the number of files.
constexpr std::size_t kRunsGathered = 1U << 18;
}  // namespace

void add_references(const format::Recipe& recipe, std::vector<base::IdRun>& runs) {
  for (const auto& run : recipe.runs) {
    if (!run.is_hole()) runs.push_back({run.first, run.count});
  }
}

void add_references(const OpenInode& inode, std::vector<base::IdRun>& runs) {
  if (inode.content.recipe) add_references(*inode.content.recipe, runs);
  if (!inode.staging.is_staged()) return;
  for (std::uint64_t at = 0; at < inode.staging.ranges->size();) {
    const auto range = inode.staging.ranges->at(at);
    // The whole recipe counts: cutting may look at the chunks before and after the range.
    if (range.source == StagedContent::Source::kRecipe) {
      add_references(range.recipe->recipe(), runs);
    }
    at = range.end;
  }
}

Result<base::IdRuns> overlay_references(const meta::Txn& overlay, Ino base_end) {
  base::IdRuns found;
  std::vector<base::IdRun> runs;
  const auto visit = [&](std::string_view key, std::string_view value) -> Result<bool> {
    if (value.empty()) return true;  // A removed file of the base.
    if (key.size() != 8) return Error(ErrorCode::kCorrupt, "an overlay has a bad key");
    VARVE_TRY_ASSIGN(const auto inode, decode_open_inode(base::load_be64(key), value, base_end));
    add_references(*inode, runs);
    if (runs.size() > kRunsGathered) {
      found = found.unite(base::IdRuns::from(std::exchange(runs, {})));
    }
    return true;
  };
  VARVE_TRY(meta::for_each_prefix(overlay, meta::overlay::kInodes, "", visit));
  return found.unite(base::IdRuns::from(std::move(runs)));
}

Result<base::IdRuns> stored_references(io::FileSystem& files, const std::string& staging_directory,
                                       const meta::EnvKeys& keys, Ino base_end) {
  const auto directory = staging_directory + "/overlay";
  VARVE_TRY_ASSIGN(const bool present, files.exists(directory));
  if (!present) return base::IdRuns();
  VARVE_TRY(meta::check_pages(files, directory, meta::overlay::kTables));
  meta::EnvOptions options;
  options.tables = meta::overlay::kTables;
  options.read_only = true;
  options.must_exist = true;
  options.keys = keys;
  VARVE_TRY_ASSIGN(const auto env, meta::Env::open(files, directory, options));
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(env));
  return overlay_references(txn, base_end);
}

// New references come from the index (find), from recipes (covers) and from inodes. While the
// calling thread holds references_mutex exclusively, no thread is between covers() and an inode.
// Batches looked up in the index before `retire` are in recipes once the pipeline is drained
// (docs/ORDERING.md O15).
Result<base::IdRuns> collect_references(OpenState& state, CloneSources& clones,
                                        const std::function<void()>& retire) {
  std::vector<base::IdRun> runs;
  Overlay::Use env;
  std::optional<meta::ReadTxn> overlay;
  {
    // A running checkpoint holds records of inodes that may change or go before the commit.
    const std::lock_guard at_rest(state.checkpoint_mutex);
    const std::unique_lock alone(state.references_mutex);
    retire();
    // An error (a full disk) leaves only batches without a lookup in the index so far.
    static_cast<void>(state.pipeline.drain());
    const std::lock_guard lock(state.mutex);
    clones.forget();
    VARVE_TRY(state.tree.for_each_in_memory([&](OpenInode& inode) -> Result<void> {
      add_references(inode, runs);
      if (!inode.content.stream) return {};
      VARVE_TRY_ASSIGN(const auto content, state.pipeline.snapshot(inode.content.stream));
      add_references(content.recipe, runs);
      return {};
    }));
    // The snapshot holds everything not in memory, because no checkpoint is running.
    if (state.overlay) {
      VARVE_TRY_ASSIGN(env, state.overlay->use());
      VARVE_TRY_ASSIGN(auto txn, meta::ReadTxn::begin(*env));
      overlay.emplace(std::move(txn));
    }
  }
  if (!overlay) return base::IdRuns::from(std::move(runs));
  const auto& clone_base = state.parts.base;
  VARVE_TRY_ASSIGN(const auto stored,
                   overlay_references(*overlay, clone_base ? clone_base->end() : 0));
  return stored.unite(base::IdRuns::from(std::move(runs)));
}

}  // namespace varve::version
