// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/ids.h"
#include "catalog/page_cache.h"
#include "format/data_codecs.h"
#include "io/file_system.h"
#include "meta/lmdb.h"
#include "series/series_host.h"
#include "series/series_metrics.h"
#include "series/writing_parts.h"
#include "store/folder_store.h"
#include "store/open_files.h"
#include "store/repository_paths.h"
#include "store/space_guard.h"
#include "varve/options.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::store {
class FoundDamage;
}  // namespace varve::store

namespace varve::restore {
class ReadService;
}  // namespace varve::restore

namespace varve::series {

/// Returns the error of a change to a repository opened read-only: kReadOnly.
[[nodiscard]] Error opened_read_only();

/// The objects lent to each series by its repository.
/// Lifetime: all objects outlive the series.
struct SeriesParts {
  SeriesId id{};
  StoreId store{};  ///< Where the chunks of the series are.
  const store::RepositoryPaths* paths = nullptr;
  const OpenOptions* options = nullptr;
  const format::DataCodecs* codecs = nullptr;
  io::FileSystem* files = nullptr;
  const meta::Env* catalog = nullptr;
  const base::Clock* clock = nullptr;
  store::SpaceGuard* space = nullptr;
  store::OpenFiles* open_files = nullptr;
  store::FoundDamage* damage = nullptr;
  catalog::PageCache* pages = nullptr;
  const SeriesMetrics* metrics = nullptr;
  restore::ReadService* read_service = nullptr;
  WritingParts writing;
  SeriesHost* host = nullptr;
  /// False in an attached folder: the content of open versions is on the writer's machine.
  bool has_open_versions = true;
  /// Opens the segment stores. Empty if all data is on the disk.
  store::StoreOpener open_store{};

  /// Returns the series' folder.
  [[nodiscard]] std::string directory() const { return paths->series(id); }
  /// Errors: kReadOnly if the repository is open read-only.
  [[nodiscard]] Result<void> check_writable() const;
  /// Runs `work`. If the disk is full, releases the reserve and runs `work` again.
  [[nodiscard]] Result<void> with_reserve(const std::function<Result<void>()>& work) const;
};

}  // namespace varve::series
