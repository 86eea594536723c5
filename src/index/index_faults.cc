// SPDX-License-Identifier: Apache-2.0
#include "index/index_faults.h"

#include "index/zero_files.h"

namespace varve::index {

namespace {

// A concurrent writer that replaces the index removes runs, so a fault counts only if the snapshot
// is unchanged.
constexpr int kLooksMax = 8;

std::vector<IndexFault> faults_of_pool_runs(const PoolIndexFolder& folder) {
  const auto path = folder.runs.directory + "/" + folder.snapshot_name;
  std::vector<IndexFault> faults;
  for (int looks = 0; looks < kLooksMax; ++looks) {
    const auto bytes = folder.runs.files->read_file(path, kSnapshotBytesMax);
    if (!bytes && bytes.error().code() == ErrorCode::kNotFound) return {};
    const auto runs = bytes ? decode_snapshot(*bytes, kPoolSeries, snapshot_version(*bytes))
                            : Result<std::vector<RunRef>>(bytes.error());
    // The pool's index never had the layout of the snapshot: a writer replaces the snapshot.
    if (!runs && runs.error().code() == ErrorCode::kUnsupported) return {};
    if (!runs) return {{path, runs.error()}};
    faults = faults_of_runs(folder.runs, *runs);
    if (faults.empty()) return faults;
    const auto again = folder.runs.files->read_file(path, kSnapshotBytesMax);
    if (again && *again == *bytes) return faults;
  }
  return {};
}

}  // namespace

std::vector<IndexFault> faults_of_runs(const RunFolder& folder, const std::vector<RunRef>& runs) {
  std::vector<IndexFault> faults;
  for (const auto& ref : runs) {
    const auto run = IndexRun::open(folder, ref);
    const auto sound = run ? (*run)->verify() : Result<void>(run.error());
    if (sound || sound.error().code() == ErrorCode::kNotFound) continue;
    faults.push_back({folder.path_of(ref.number), sound.error()});
  }
  return faults;
}

std::vector<IndexFault> faults_of_pool_index(const PoolIndexFolder& folder) {
  auto faults = faults_of_pool_runs(folder);
  const auto of_bins = ZeroFiles::find_faults(*folder.runs.files, folder.runs.directory);
  faults.insert(faults.end(), of_bins.begin(), of_bins.end());
  return faults;
}

}  // namespace varve::index
