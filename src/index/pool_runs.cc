// SPDX-License-Identifier: Apache-2.0
#include "index/pool_runs.h"

#include <algorithm>

#include "base/coding.h"
#include "base/log.h"

namespace varve::index {

// The snapshot belongs to no version. The header has a birth in place of a version's number.
Result<PoolRuns::Snapshot> PoolRuns::read_snapshot() const {
  const std::string path = folder_.runs.directory + "/" + folder_.snapshot_name;
  auto bytes = folder_.runs.files->read_file(path, kSnapshotBytesMax);
  if (!bytes) return std::move(bytes).error();
  const auto complete_below = snapshot_version(*bytes);
  auto refs = decode_snapshot(*bytes, kPoolSeries, complete_below);
  if (!refs) return std::move(refs).error().with_context(path);
  return Snapshot{*std::move(refs), complete_below};
}

VersionNumber PoolRuns::open() {
  auto snapshot = read_snapshot();
  if (!snapshot && snapshot.error().code() != ErrorCode::kNotFound) {
    base::log(base::LogLevel::kWarning,
              snapshot.error().message() + "; building the pool's index from containers");
  }
  const auto named = snapshot ? *std::move(snapshot) : Snapshot();
  // Removes runs left by a crash and missing in the snapshot.
  remove_other_runs(named.runs);
  set_.open(named.runs);
  return set_.refs() == named.runs ? named.complete_below : VersionNumber{};
}

Result<void> PoolRuns::save(VersionNumber complete_below) {
  const auto refs = set_.refs();
  VARVE_TRY(folder_.runs.files->write_file_atomically(
      folder_.runs.directory, folder_.snapshot_name,
      base::as_bytes(encode_snapshot(kPoolSeries, complete_below, refs))));
  remove_other_runs(refs);
  return {};
}

void PoolRuns::remove_all(const PoolIndexFolder& folder) {
  PoolRuns(folder).remove_other_runs({});
  const auto snapshot = folder.runs.directory + "/" + folder.snapshot_name;
  const auto removed = folder.runs.files->remove(snapshot);
  if (!removed && removed.error().code() != ErrorCode::kNotFound) {
    base::log(base::LogLevel::kWarning, removed.error().message());
  }
}

void PoolRuns::remove_other_runs(const std::vector<RunRef>& refs) const {
  io::FileSystem& files = *folder_.runs.files;
  Result<void> outcome;
  const auto names = files.list(folder_.runs.directory);
  if (!names && names.error().code() != ErrorCode::kNotFound) outcome = names.error();
  for (const auto& name : names ? *names : std::vector<std::string>()) {
    const auto number = folder_.number_of(name);
    if (!number) continue;
    if (std::ranges::any_of(refs, [&](const RunRef& ref) { return ref.number == *number; })) {
      continue;
    }
    auto removed = files.remove(folder_.runs.directory + "/" + name);
    if (!removed) outcome = std::move(removed);
  }
  if (!outcome) {  // The next save tries again.
    base::log(base::LogLevel::kWarning,
              outcome.error().message() + "; old files of the pool's index take space");
  }
}

}  // namespace varve::index
