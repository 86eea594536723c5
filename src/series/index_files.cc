// SPDX-License-Identifier: Apache-2.0
#include "series/index_files.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "index/index_faults.h"
#include "store/repository_names.h"

namespace varve::series {

namespace {

std::string snapshot_path(const SeriesParts& parts, VersionNumber number) {
  return parts.directory() + "/" + store::snapshot_name(number);
}

// Verifies a snapshot of layout 1.
Result<void> verify_old_snapshot(io::FileSystem& files, const std::string& path, SeriesId series,
                                 VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto file, files.open(path, io::OpenMode::kRead));
  const auto ids = index::scan_snapshot(
      *file, series, number, [](const index::Entry&, std::uint64_t) -> Result<void> { return {}; });
  if (!ids) return Error(ids.error()).with_context(path);
  return {};
}

// Errors: as read_index_snapshot().
Result<std::vector<index::RunRef>> read_snapshot(io::FileSystem& files, const std::string& path,
                                                 SeriesId series, VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto file, files.open(path, io::OpenMode::kRead));
  VARVE_TRY_ASSIGN(const auto size, file->size());
  // The header decides about the layout: a snapshot of layout 1 may be large.
  const auto wanted = std::min<std::uint64_t>(size, index::kSnapshotBytesMax);
  std::string bytes(wanted, '\0');
  VARVE_TRY_ASSIGN(const auto got,
                   file->read_at(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))));
  bytes.resize(got);
  auto runs = index::decode_snapshot(bytes, series, number);
  if (!runs) return std::move(runs).error().with_context(path);
  return runs;
}

Result<void> verify_runs(const SeriesParts& parts, const std::vector<index::RunRef>& runs) {
  for (const auto& ref : runs) {
    VARVE_TRY_ASSIGN(const auto run, index::IndexRun::open(run_folder(parts), ref));
    VARVE_TRY(run->verify());
  }
  return {};
}

}  // namespace

index::RunFolder run_folder(const SeriesParts& parts) {
  return {parts.files, parts.directory(), parts.id, store::index_run_name};
}

index::PoolIndexFolder pool_index_folder(io::FileSystem& files, const std::string& directory) {
  index::PoolIndexFolder folder;
  folder.runs = {&files, directory, index::kPoolSeries, store::index_run_name};
  folder.snapshot_name = store::kPoolSnapshotName;
  folder.number_of = store::parse_index_run_name;
  return folder;
}

Result<std::vector<index::RunRef>> read_index_snapshot(const SeriesParts& parts,
                                                       VersionNumber number) {
  return read_snapshot(*parts.files, snapshot_path(parts, number), parts.id, number);
}

Result<void> write_index_snapshot(const SeriesParts& parts, VersionNumber number,
                                  const std::vector<index::RunRef>& runs) {
  const std::string snapshot = index::encode_snapshot(parts.id, number, runs);
  return parts.files->write_file_atomically(parts.directory(), store::snapshot_name(number),
                                            base::as_bytes(snapshot));
}

Result<void> verify_index_files(const SeriesParts& parts, VersionNumber number) {
  const auto runs = read_index_snapshot(parts, number);
  if (!runs && runs.error().code() == ErrorCode::kUnsupported) {
    return verify_old_snapshot(*parts.files, snapshot_path(parts, number), parts.id, number);
  }
  if (!runs) return runs.error();
  auto verified = verify_runs(parts, *runs);
  if (verified) return {};
  // A seal or a deletion in another process may have replaced the index meanwhile: a replacement
  // removes the snapshot before the runs.
  const auto again = read_index_snapshot(parts, number);
  if (!again && again.error().code() == ErrorCode::kNotFound) return {};
  return verified;
}

std::vector<index::IndexFault> faults_of_pool_files(io::FileSystem& files,
                                                    const std::string& directory) {
  return index::faults_of_pool_index(pool_index_folder(files, directory));
}

Result<std::vector<index::IndexFault>> faults_of_index_files(io::FileSystem& files,
                                                             const std::string& directory,
                                                             SeriesId series) {
  std::vector<index::IndexFault> faults;
  VARVE_TRY_ASSIGN(const auto names, files.list(directory));
  const index::RunFolder folder{&files, directory, series, store::index_run_name};
  for (const auto& name : names) {
    const auto number = store::parse_snapshot_name(name);
    if (!number) continue;
    const auto path = directory + "/" + name;
    const auto runs = read_snapshot(files, path, series, *number);
    if (runs) {
      const auto of_runs = index::faults_of_runs(folder, *runs);
      faults.insert(faults.end(), of_runs.begin(), of_runs.end());
      continue;
    }
    const bool is_old = runs.error().code() == ErrorCode::kUnsupported;
    const auto sound =
        is_old ? verify_old_snapshot(files, path, series, *number) : Result<void>(runs.error());
    if (!sound) faults.push_back({path, sound.error()});
  }
  return faults;
}

Result<void> remove_other_runs(const SeriesParts& parts, const std::vector<index::RunRef>& runs) {
  VARVE_TRY_ASSIGN(const auto names, parts.files->list(parts.directory()));
  Result<void> outcome;
  for (const auto& name : names) {
    const auto number = store::parse_index_run_name(name);
    if (!number) continue;
    if (std::ranges::any_of(runs, [&](const auto& run) { return run.number == *number; })) continue;
    auto removed = parts.files->remove(parts.directory() + "/" + name);
    if (!removed) outcome = std::move(removed);
  }
  return outcome;
}

Result<void> remove_other_index_files(const SeriesParts& parts, VersionNumber number) {
  VARVE_TRY_ASSIGN(const auto runs, read_index_snapshot(parts, number));
  VARVE_TRY_ASSIGN(const auto names, parts.files->list(parts.directory()));
  Result<void> outcome;
  for (const auto& name : names) {
    const auto snapshot = store::parse_snapshot_name(name);
    if (!snapshot || *snapshot == number) continue;
    auto removed = parts.files->remove(parts.directory() + "/" + name);
    if (!removed) outcome = std::move(removed);
  }
  auto others = remove_other_runs(parts, runs);
  return others ? std::move(outcome) : std::move(others);
}

Result<std::uint64_t> index_file_bytes(const SeriesParts& parts) {
  auto names = parts.files->list(parts.directory());
  if (!names && names.error().code() == ErrorCode::kNotFound) return std::uint64_t{0};
  if (!names) return std::move(names).error();
  std::uint64_t sum = 0;
  for (const auto& name : *names) {
    if (!store::parse_snapshot_name(name) && !store::parse_index_run_name(name)) continue;
    const auto bytes = parts.files->tree_bytes(parts.directory() + "/" + name);
    if (!bytes && bytes.error().code() == ErrorCode::kNotFound) continue;  // Removed meanwhile.
    if (!bytes) return bytes.error();
    sum += *bytes;
  }
  return sum;
}

Result<IndexFilesPlan> plan_index_files(const SeriesParts& parts,
                                        const std::vector<catalog::VersionRecord>& all,
                                        const std::vector<catalog::VersionRecord>& gone) {
  IndexFilesPlan plan;
  std::uint64_t snapshot_bytes = 0;
  for (const auto& record : gone) {
    const auto path = snapshot_path(parts, record.number);
    VARVE_TRY_ASSIGN(const bool present, parts.files->exists(path));
    if (!present) continue;
    VARVE_TRY_ASSIGN(snapshot_bytes, parts.files->tree_bytes(path));
    plan.from = record.number;
  }
  if (!plan.from) return plan;
  std::optional<VersionNumber> newest;
  bool has_open = false;
  for (const auto& record : all) {
    const bool goes =
        std::ranges::any_of(gone, [&](const auto& one) { return one.number == record.number; });
    if (record.state == VersionState::kOpen) has_open = true;
    if (record.state == VersionState::kSealed && !goes) newest = record.number;
  }
  if (newest && *newest < *plan.from && read_index_snapshot(parts, *plan.from)) {
    plan.to = newest;  // A snapshot has the same size under another name.
    return plan;
  }
  plan.freed_bytes = snapshot_bytes;
  if (newest || has_open) return plan;  // The index of an open version uses the runs.
  plan.drops_runs = true;
  VARVE_TRY_ASSIGN(plan.freed_bytes, index_file_bytes(parts));
  return plan;
}

Result<void> prepare_index_files(const SeriesParts& parts, const IndexFilesPlan& plan) {
  if (!plan.to) return {};
  VARVE_TRY_ASSIGN(const auto runs, read_index_snapshot(parts, *plan.from));
  return write_index_snapshot(parts, *plan.to, runs);
}

Result<void> apply_index_files(const SeriesParts& parts, const IndexFilesPlan& plan) {
  if (!plan.from) return {};
  auto removed = parts.files->remove(snapshot_path(parts, *plan.from));
  if (!plan.drops_runs) return removed;
  auto others = remove_other_runs(parts, {});
  return removed ? std::move(others) : std::move(removed);
}

}  // namespace varve::series
