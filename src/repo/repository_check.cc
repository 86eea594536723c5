// SPDX-License-Identifier: Apache-2.0
// Connects a check with the rooms for indexes and open versions.
#include <utility>

#include "maintain/checker.h"
#include "repo/derived_files.h"
#include "repo/repository_impl.h"
#include "series/pool.h"

namespace varve::repo {

maintain::CheckHelpers RepositoryImpl::check_helpers() {
  maintain::CheckHelpers helpers;
  // Only a writer has the index and open versions.
  const bool has_index = !folder_.is_attached();
  helpers.has_open_versions = has_index;
  helpers.is_distant = folder_.is_attached();
  if (folder_.bucket) helpers.drop_cached = [this] { folder_.bucket->drop_cached(); };
  if (folder_.options.read_only) {
    helpers.labels_are_complete = [this] { return settled_state_.has_note(); };
  }
  helpers.verify_index = [this, has_index](SeriesId id, VersionNumber newest) -> Result<void> {
    if (!has_index) return {};
    VARVE_TRY_ASSIGN(auto* const one, series_.find(id));
    return one->verify_index(newest);
  };
  if (has_index) {
    helpers.derived_faults = [this] {
      return find_derived_faults(*folder_.files, folder_.paths.root(),
                                 maintain::DerivedFiles::kBesideIndex);
    };
  }
  // A writing process may have the overlay open, and LMDB's locks belong to the process.
  if (!folder_.options.read_only) return helpers;
  helpers.read_staged = [this](SeriesId id, VersionNumber number) -> Result<maintain::StagedFacts> {
    VARVE_TRY_ASSIGN(auto* const one, series_.find(id));
    VARVE_TRY_ASSIGN(auto state, one->read_staged_state(number));
    return maintain::StagedFacts{std::move(state.faults), std::move(state.chunks)};
  };
  return helpers;
}

}  // namespace varve::repo
