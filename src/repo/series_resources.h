// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include "base/descriptor_budget.h"
#include "base/metrics.h"
#include "base/recurring_tasks.h"
#include "base/thread_pool.h"
#include "catalog/page_cache.h"
#include "ingest/chunker.h"
#include "meta/env_cache.h"
#include "repo/disk_costs.h"
#include "repo/repository_folder.h"
#include "repo/settled_state.h"
#include "restore/read_service.h"
#include "series/pool.h"
#include "series/series_metrics.h"
#include "series/series_parts.h"
#include "store/found_damage.h"
#include "store/open_files.h"
#include "store/space_guard.h"
#include "varve/result.h"

namespace varve::repo {

/// The objects that all series of an open repository share: caches, threads, the read service, and
/// the pool. Thread-safe after the start functions.
class SeriesResources {
 public:
  /// Lifetime: the arguments outlive the object.
  SeriesResources(RepositoryFolder& folder, const SettledState& settled_state,
                  base::Metrics& metrics);

  /// Makes the objects for reading versions. Call first.
  [[nodiscard]] Result<void> start_reading();
  /// Makes the objects for writing versions. Call after start_reading(), in a repository open for
  /// writing.
  void start_writing();
  /// Lends the folder's and all shared objects to a series.
  /// Lifetime: the object outlives the series.
  void lend_to(series::SeriesParts& parts);

  /// Returns the pool. The first call opens the pool.
  [[nodiscard]] Result<series::Pool*> pool();
  /// Returns the pool if open; else null.
  [[nodiscard]] series::Pool* opened_pool();
  [[nodiscard]] store::SpaceGuard& space() { return space_; }
  [[nodiscard]] catalog::PageCache& pages() { return pages_; }
  /// Returns the chunks that reads found damaged, also in the pool.
  [[nodiscard]] store::FoundDamage& damage() { return damage_; }
  /// Returns the measured costs of the disk; null before start_reading() and after stop().
  [[nodiscard]] DiskCosts* disk_costs() { return disk_costs_.get(); }

  /// Ends the measurement of the disk. Call before the series end.
  void stop() { disk_costs_.reset(); }
  /// Ends the read service. Call after the series have released their versions: the threads of the
  /// service may read through the layouts of the series.
  void end_reads() { read_service_.reset(); }

 private:
  RepositoryFolder& folder_;
  const SettledState& settled_state_;
  base::Metrics& metrics_;
  const series::SeriesMetrics series_metrics_{metrics_};
  store::SpaceGuard space_;
  store::FoundDamage damage_;
  store::OpenFiles open_files_;
  catalog::PageCache pages_;
  std::unique_ptr<ingest::Chunker> chunker_;
  std::unique_ptr<base::ThreadPool> compressors_;  // Null, as the next members, unless writing.
  std::unique_ptr<base::ThreadPool> fingerprint_pool_;
  std::unique_ptr<base::RecurringTasks> checkpoint_tasks_;
  std::shared_ptr<meta::EnvCache> overlays_;
  base::DescriptorBudget descriptors_{base::DescriptorBudget::of_process()};
  std::unique_ptr<restore::ReadService> read_service_;
  std::unique_ptr<DiskCosts> disk_costs_;
  std::mutex pool_mutex_;  // Guards pool_; held while the pool is opened.
  std::unique_ptr<series::Pool> pool_;
};

}  // namespace varve::repo
