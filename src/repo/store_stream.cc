// SPDX-License-Identifier: Apache-2.0
// Stores a stream as a version. A stream cannot be read a second time, so an incomplete version has
// no use: the version is dropped, or emptied by the next store of a stream. Until then,
// SourceMemory's file beside the version prevents other commands from sealing the version.
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "repo/incomplete_mark.h"
#include "repo/open_store.h"
#include "repo/source_guard.h"
#include "repo/source_memory.h"
#include "transfer/archive_importer.h"
#include "transfer/version_names.h"
#include "varve/store.h"

namespace varve::repo {
namespace {

Result<TransferReport> import_into(VersionWriter& writer, const StreamRequest& request, int fd,
                                   const std::function<bool(const TransferProgress&)>& progress) {
  return request.file.empty() ? transfer::import_archive(writer, fd, progress)
                              : transfer::import_stream(writer, request.file, fd, progress);
}

/// Errors: kRefused for a stream without a byte, and an archive without a member.
Result<void> check_has_content(const StreamRequest& request, const TransferReport& report) {
  const bool is_archive = request.file.empty();
  if (!request.refuses_empty || (is_archive ? report.entries > 0 : report.bytes != 0)) return {};
  return Error(ErrorCode::kRefused,
               std::string(is_archive ? "the archive has no members" : "the stream is empty") +
                   "; nothing was stored. Check the program that writes it; --allow-empty stores "
                   "an empty one");
}

}  // namespace

Result<StoredVersion> store_stream(Repository& repository, io::FileSystem& files,
                                   const StreamRequest& request, int fd,
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
  SourceMemory memory(repository, files, store, store.source);
  NewFile root;
  root.mode = S_IFDIR | 0755;
  root.uid = ::geteuid();
  root.gid = ::getegid();
  const bool had_series = repository.find_series(request.series).has_value();
  const bool had_version = has_open_version(repository, request.series, request.version);
  StoredVersion stored;
  VARVE_TRY_ASSIGN(stored.info, open_or_continue(repository, files, store, memory, root));
  const bool own = memory.tracking() != nullptr;
  auto report = [&]() -> Result<TransferReport> {
    VARVE_TRY_ASSIGN(const auto writer, repository.writer(stored.info.series));
    if (own) VARVE_TRY(transfer::clear_directory(*writer, kRootIno));
    VARVE_TRY_ASSIGN(auto imported, import_into(*writer, request, fd, progress));
    VARVE_TRY(mark_problems(*writer, imported.problems.size()));
    VARVE_TRY(writer->sync());
    if (request.confirm) VARVE_TRY(request.confirm());
    VARVE_TRY(check_has_content(request, imported));
    return imported;
  }();
  if (!report) {
    if (own || !had_version) {
      drop_version(repository, files, request.drop, stored.info, !had_series);
    }
    if (report.error().code() == ErrorCode::kRefused) {
      note_refused(repository, request.series, RefusalReason::kEmpty);
    }
    return std::move(report).error();
  }
  stored.report = std::move(*report);
  VARVE_TRY(memory.finish());
  stored.keep_states = keeper_of(repository, files, memory);
  return stored;
}

}  // namespace varve::repo
