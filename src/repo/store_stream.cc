// SPDX-License-Identifier: Apache-2.0
// Stores a stream as a version. A stream cannot be read a second time, so an incomplete version has
// no use: it is dropped, or emptied by the next store of such a stream. Until then the file that
// SourceMemory keeps beside it prevents that another command seals it.
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "base/log.h"
#include "repo/incomplete_mark.h"
#include "repo/open_store.h"
#include "repo/source_memory.h"
#include "transfer/archive_importer.h"
#include "transfer/version_names.h"
#include "varve/store.h"

namespace varve {
namespace {

Result<TransferReport> import_into(VersionWriter& writer, const StreamRequest& request, int fd,
                                   const std::function<bool(const TransferProgress&)>& progress) {
  return request.file.empty() ? transfer::import_archive(writer, fd, progress)
                              : transfer::import_stream(writer, request.file, fd, progress);
}

/// Returns whether the series has an open version with the requested name.
bool has_version(Repository& repository, const StreamRequest& request) {
  const auto series = repository.find_series(request.series);
  if (!series) return false;
  const auto writer = repository.writer(series->id);
  return writer && (*writer)->info().name == request.version;
}

/// Drops an incomplete version, and its series if that is new.
void drop(Repository& repository, const StreamRequest& request, const VersionInfo& version,
          bool new_series) {
  auto dropped = request.drop ? request.drop(version.series, version.number)
                              : repository.abandon_version(version.series, version.number, true);
  if (dropped && new_series) dropped = repository.remove_series(version.series_name);
  if (!dropped) {
    base::log(base::LogLevel::kWarning, version.name + " is incomplete and could not be dropped: " +
                                            dropped.error().message());
  }
}

}  // namespace

Result<StoredVersion> store_stream(Repository& repository, const StreamRequest& request, int fd,
                                   const std::function<bool(const TransferProgress&)>& progress) {
  if (!request.file.empty()) VARVE_TRY(transfer::check_stream_path(request.file));
  StoreRequest store;
  store.series = request.series;
  store.version = request.version;
  store.seals = request.seals;
  store.read_all = true;
  store.open = request.open;
  // Not the path of a directory.
  store.source = request.file.empty() ? "archive" : "stream " + request.file;
  repo::SourceMemory memory(repository, store, store.source);
  NewFile root;
  root.mode = S_IFDIR | 0755;
  root.uid = ::geteuid();
  root.gid = ::getegid();
  const bool had_series = repository.find_series(request.series).has_value();
  const bool had_version = has_version(repository, request);
  StoredVersion stored;
  VARVE_TRY_ASSIGN(stored.info, repo::open_or_continue(repository, store, memory, root));
  const bool own = memory.tracking() != nullptr;
  auto report = [&]() -> Result<TransferReport> {
    VARVE_TRY_ASSIGN(const auto writer, repository.writer(stored.info.series));
    if (own) VARVE_TRY(transfer::clear_directory(*writer, kRootIno));
    VARVE_TRY_ASSIGN(auto imported, import_into(*writer, request, fd, progress));
    VARVE_TRY(repo::mark_problems(*writer, imported.problems.size()));
    VARVE_TRY(writer->sync());
    if (request.confirm) VARVE_TRY(request.confirm());
    return imported;
  }();
  if (!report) {
    if (own || !had_version) drop(repository, request, stored.info, !had_series);
    return std::move(report).error();
  }
  stored.report = std::move(*report);
  VARVE_TRY(memory.finish());
  stored.sources = memory.states();
  return stored;
}

}  // namespace varve
