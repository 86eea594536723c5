// SPDX-License-Identifier: Apache-2.0
// Checks of a repository.
#include <utility>

#include "maintain/check_record.h"
#include "maintain/checker.h"
#include "maintain/scrub.h"
#include "repo/derived_files.h"
#include "repo/repository_impl.h"
#include "series/index_files.h"
#include "series/unstored_files.h"

namespace varve::repo {

maintain::CheckHelpers RepositoryImpl::check_helpers() {
  maintain::CheckHelpers helpers;
  helpers.open_store = folder_.storage->opener();
  // Only a writer has the index and open versions.
  const bool has_index = !folder_.is_attached();
  helpers.has_open_versions = has_index;
  helpers.is_distant = folder_.is_attached();
  helpers.drop_cached = [this] { folder_.storage->drop_cached(); };
  if (folder_.options.read_only) {
    helpers.labels_are_complete = [this] { return settled_state_.has_note(); };
  }
  helpers.verify_index = [this, has_index](SeriesId id, VersionNumber newest) -> Result<void> {
    if (!has_index) return {};
    VARVE_TRY_ASSIGN(auto* const one, series_.find(id));
    return series::verify_index_files(one->parts(), newest);
  };
  if (has_index) {
    helpers.derived_faults = [this] {
      return find_derived_faults(*folder_.files, folder_.paths.root(),
                                 maintain::DerivedFiles::kBesideIndex);
    };
  }
  // A writing process may have the overlay open, and LMDB's locks belong to the process.
  if (!folder_.options.read_only) return helpers;
  helpers.find_unstored = series::find_unstored_files;
  helpers.read_staged = [this](SeriesId id,
                               VersionNumber number) -> Result<std::vector<std::string>> {
    VARVE_TRY_ASSIGN(auto* const one, series_.find(id));
    VARVE_TRY_ASSIGN(auto state, one->read_staged_state(number));
    return std::move(state.faults);
  };
  return helpers;
}

Result<CheckReport> RepositoryImpl::check(const CheckOptions& options,
                                          const CheckObserver& progress) {
  maintain::LostChunks lost;
  const auto run = [&]() -> Result<CheckReport> {
    maintain::Checker checker(folder_.codecs, folder_.catalog, *folder_.files, folder_.paths.root(),
                              options, progress, check_helpers());
    auto checked = checker.run();
    lost = checker.lost_chunks();
    return checked;
  };
  VARVE_TRY_ASSIGN(auto report, run());
  // The cache may have kept a wrong answer that the store gave only once. A check of a percentage
  // would read different containers the second time.
  const bool was_cached = !report.damages.empty() && folder_.storage->drop_cached();
  if (was_cached && report.finished && options.percent == 100) {
    VARVE_TRY_ASSIGN(report, run());
  }
  settled_state_.add_older_catalog(report.damages);
  if (const auto fault = folder_.superblock.fault_of_copy()) {
    report.damages.push_back({folder_.paths.keys(), *fault, {}});
  }
  VARVE_TRY_ASSIGN(report.sequence, sequence());
  if (options.expected_sequence && *options.expected_sequence > report.sequence.value_or(0)) {
    report.damages.insert(
        report.damages.begin(),
        {folder_.paths.root(),
         "its sequence number is " + std::to_string(report.sequence.value_or(0)) + ", and " +
             std::to_string(*options.expected_sequence) +
             " was expected: an older state of the repository was put back, or its newest changes "
             "are lost",
         {}});
  }
  maintain::CheckEnd end;
  if (options.verify_chunks) {
    end.reached = CheckDepth::kChunks;
  } else if (options.read_data) {
    end.reached = CheckDepth::kData;
  }
  const bool is_whole = report.finished && options.percent == 100 && !options.after;
  if (is_whole) end.whole = end.reached;
  end.damages = report.damages.size();
  quarantine_.keep_damage(lost, end, report.finished || end.damages != 0, report);
  return report;
}

std::vector<EarlierCheck> RepositoryImpl::earlier_checks() {
  return maintain::read_earlier_checks(*folder_.files, folder_.paths.root());
}

Result<ScrubReport> RepositoryImpl::scrub(const ScrubOptions& options,
                                          const CheckObserver& progress) {
  maintain::LostChunks lost;
  VARVE_TRY_ASSIGN(auto report,
                   maintain::scrub(folder_.codecs, folder_.catalog, *folder_.files,
                                   folder_.paths.root(), options, progress, check_helpers(), lost));
  settled_state_.add_older_catalog(report.check.damages);
  // A finished pass has compared all data, perhaps in several runs.
  maintain::CheckEnd end{.reached = CheckDepth::kChunks,
                         .damages = report.damages_before + report.check.damages.size()};
  if (report.check.finished) end.whole = CheckDepth::kChunks;
  quarantine_.keep_damage(lost, end, report.check.finished || end.damages != 0, report.check);
  return report;
}

}  // namespace varve::repo
