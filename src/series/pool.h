// SPDX-License-Identifier: Apache-2.0
// The pool of a repository with its index, as used by the series.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/id_runs.h"
#include "base/thread_pool.h"
#include "format/fingerprinter.h"
#include "format/frame_codec.h"
#include "format/recipe.h"
#include "index/pool_index.h"
#include "index/stream_metrics.h"
#include "io/file_system.h"
#include "layout/layout_metrics.h"
#include "layout/pool_store.h"
#include "maintain/parity_upkeep.h"
#include "meta/lmdb.h"
#include "series/container_fingerprints.h"
#include "series/series_parts.h"
#include "store/folder_store.h"
#include "store/open_files.h"
#include "store/repository_paths.h"
#include "store/space_guard.h"
#include "varve/arrange.h"
#include "varve/result.h"

namespace varve::layout {
class PostPass;
struct PoolMergerParts;
struct PostPassHooks;
}  // namespace varve::layout

namespace varve::store {
class FoundDamage;
}  // namespace varve::store

namespace varve::series {

/// The objects lent to the pool by its repository.
/// Lifetime: all objects outlive the pool.
struct PoolHost {
  const store::RepositoryPaths* paths = nullptr;
  io::FileSystem* files = nullptr;
  const meta::Env* catalog = nullptr;
  const format::FrameCodec* codec = nullptr;
  base::ThreadPool* compressors = nullptr;  ///< Null if the repository is read-only.
  store::OpenFiles* open_files = nullptr;
  store::SpaceGuard* space = nullptr;
  const format::Fingerprinter* fingerprinter = nullptr;  ///< Null if the repository is read-only.
  const layout::LayoutMetrics* metrics = nullptr;
  const index::StreamMetrics* stream_metrics = nullptr;  ///< May be null.
  store::FoundDamage* damage = nullptr;                  ///< May be null.
  bool read_only = false;
  /// As in SeriesParts.
  store::StoreOpener open_store{};
  bool settled = false;  ///< The last writer left nothing to complete (docs/ORDERING.md O37).
};

/// Returns whether Pool::merge() has work to do.
[[nodiscard]] Result<bool> pool_merging_is_due(const meta::Env& catalog);
/// Returns whether the catalog has a container in the pool.
[[nodiscard]] Result<bool> pool_has_containers(const meta::Env& catalog);

/// The pool's containers and their index. Thread-safe.
class Pool {
 public:
  /// Opens the pool. Unless read-only, pins the containers to which the open versions of all series
  /// refer: no version may be loaded yet, unless the pool is empty. Frees unused containers, if
  /// there may be any: not in a settled repository without an open version.
  [[nodiscard]] static Result<std::unique_ptr<Pool>> open(const PoolHost& host);
  ~Pool();

  [[nodiscard]] layout::PoolStore& store() { return *store_; }
  /// Returns the index. The first call opens the index. Errors: kReadOnly; those of reading the
  /// catalog.
  [[nodiscard]] Result<index::PoolIndex*> index();
  /// Returns the streams of the index; none if the index is not open.
  [[nodiscard]] std::vector<PoolStream> streams();
  /// Tells the index about a file of the series opened for reading. Does nothing while the index is
  /// being opened or saved.
  void note_opened(SeriesId series, const format::Recipe& recipe);
  /// Returns a number for a new stream of lookups.
  [[nodiscard]] index::StreamNumber next_stream() {
    return static_cast<index::StreamNumber>(++streams_);
  }

  /// Frees the unused containers in `containers`.
  [[nodiscard]] Result<void> sweep(const std::vector<ContainerNumber>& containers);
  /// Pins the containers of open versions, if the repository is read-only. Call before a forecast.
  [[nodiscard]] Result<void> prepare_forecast();
  /// Returns whether the next writer has to search for unused files or containers. No version may
  /// be in use.
  [[nodiscard]] bool has_left_behind() { return store_->has_left_behind(); }

  /// Records that the index has entries missing in its files.
  void note_changed() { changed_ = true; }
  /// Returns the chunks of the pool known to be damaged. New data must not refer to damaged chunks.
  /// Lifetime: the set stays valid and unchanged as long as the pool.
  [[nodiscard]] const base::IdRuns& quarantined() const {
    return *quarantined_.load(std::memory_order_acquire);
  }
  /// Hides chunks in the catalog's quarantine, and their aliases, from open versions.
  /// Errors: those of the catalog.
  [[nodiscard]] Result<void> note_quarantine();
  /// Forgets freed chunks.
  void forget(const base::IdRuns& freed);
  /// Merges containers left little used by deletions; see layout::PoolMerger::run(). Sets the pool
  /// and the catalog of `parts`.
  [[nodiscard]] Result<bool> merge(layout::PoolMergerParts parts);
  /// Returns whether post_pass() has work to do: if an eighth of the pool is new, and the index may
  /// have missed duplicates; with `any_new`, if anything is new; with `everything`, if anything is
  /// new since the object's last pass with `everything`.
  [[nodiscard]] Result<bool> post_pass_is_due(const PostPassOptions& options);
  /// Makes duplicates in the pool aliases; see layout::PostPass::run(). The next call continues a
  /// stopped pass.
  [[nodiscard]] Result<bool> post_pass(const PostPassOptions& options,
                                       const layout::PostPassHooks& hooks);
  /// Makes missing parity of the containers and removes unused parity. `pass` as for
  /// maintain::keep_parity(). Logs damage.
  [[nodiscard]] Result<maintain::ParityUpkeep> keep_parity(
      const std::function<bool(std::uint64_t)>& pass);
  /// Saves the index, if changed. Logs errors: an index is derived data.
  void save_index();

 private:
  explicit Pool(const PoolHost& host);
  [[nodiscard]] Result<std::unique_ptr<layout::PostPass>> begin_post_pass(
      const PostPassOptions& options);
  [[nodiscard]] Result<void> end_post_pass(const layout::PostPass& pass);
  /// Pins the containers of the open versions. Returns whether there is an open version.
  [[nodiscard]] Result<bool> pin_open_versions();
  /// Keeps new chunks away from the births to which open versions refer.
  [[nodiscard]] Result<void> raise_birth();

  const PoolHost host_;
  // Newest birth to which an open version refers, from pin_open_versions().
  VersionNumber newest_birth_{};
  std::unique_ptr<layout::PoolStore> store_;
  std::mutex quarantine_mutex_;  // Guards quarantined_sets_.
  // Every set that quarantined_ ever pointed to: a lookup may still use an older set.
  std::vector<std::unique_ptr<const base::IdRuns>> quarantined_sets_;
  std::atomic<const base::IdRuns*> quarantined_{nullptr};
  std::atomic<bool> quarantine_changed_{false};  // Since the last post-pass began.
  std::mutex forecast_mutex_;
  bool knows_pins_ = false;  // Guarded by forecast_mutex_ while the repository is read-only.
  std::mutex parity_mutex_;
  std::mutex merge_mutex_;
  // Guarded by merge_mutex_: the pass in progress, or null; whether the pass removes every
  // duplicate; and the end of the births in which the last such pass left no duplicate.
  std::unique_ptr<layout::PostPass> post_pass_;
  bool removes_everything_ = false;
  std::optional<VersionNumber> everything_removed_;
  std::mutex index_mutex_;
  std::unique_ptr<ContainerFingerprints> fingerprints_;  // Used by the index.
  std::unique_ptr<index::PoolIndex> index_;
  std::atomic<std::uint32_t> streams_{0};
  std::atomic<bool> changed_{false};
};

}  // namespace varve::series
