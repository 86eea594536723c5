// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/system_error.h"
#include "catalog/claimed_time.h"
#include "repo/incomplete_mark.h"
#include "repo/open_store.h"
#include "repo/source_guard.h"
#include "repo/source_memory.h"
#include "transfer/source_filter.h"
#include "transfer/tree_importer.h"
#include "transfer/tree_planner.h"
#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/store.h"
#include "varve/version_name.h"

namespace varve {
namespace {

/// Returns the repository's folder. The folder must not be stored, because it would grow with each
/// stored file. Refuses a source in the repository.
Result<DirectoryIdentity> find_own_folder(const std::string& repository,
                                          const std::string& directory) {
  std::error_code error;
  const auto own = std::filesystem::canonical(repository, error);
  const auto source = std::filesystem::canonical(directory, error);
  if (error) return base::io_error(directory, error.value());
  if (std::mismatch(own.begin(), own.end(), source.begin(), source.end()).first == own.end()) {
    return Error(ErrorCode::kInvalid, source.string() + " is in the repository " + own.string() +
                                          "; store a directory outside it");
  }
  struct stat status {};
  if (::lstat(own.c_str(), &status) != 0) return DirectoryIdentity{};
  return DirectoryIdentity{status.st_dev, status.st_ino};  // Valid under a bind mount, too.
}

/// Returns a new root directory with the attributes of `directory`.
Result<NewFile> root_like(const std::string& directory) {
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) {
    return base::io_error(directory, errno);
  }
  if (!S_ISDIR(status.st_mode)) {
    return Error(ErrorCode::kNotDirectory, directory + " is not a directory");
  }
  NewFile root;
  root.mode = status.st_mode;
  root.uid = status.st_uid;
  root.gid = status.st_gid;
  return root;
}

/// Gives the version of an interrupted store of the same directory the requested name. So a nightly
/// store with a new name each time needs no help after a crash, and no half version is ever sealed.
/// Returns false for any other open version.
Result<bool> take_over(Repository& repository, const StoreRequest& request, const VersionInfo& info,
                       repo::SourceMemory& memory) {
  if (!request.seals || is_partial_name(info.name) != is_partial_name(request.version)) {
    return false;
  }
  VARVE_TRY_ASSIGN(const bool began, memory.resume(info));
  if (!began) return false;
  VARVE_TRY(repository.rename_version(info.series, info.number, request.version));
  base::log(base::LogLevel::kInfo,
            info.name + ", which an interrupted store left, becomes " + request.version);
  return true;
}

/// Drops an open version that an interrupted store of any source left empty: nothing is lost, and
/// the next store goes on. Returns false for any other version.
Result<bool> drop_empty(Repository& repository, io::FileSystem& files, const StoreRequest& request,
                        std::shared_ptr<VersionWriter>& writer, repo::SourceMemory& memory) {
  const VersionInfo info = writer->info();
  VARVE_TRY_ASSIGN(const bool began, memory.any_began(info));
  if (!began) return false;
  bool is_empty = true;
  VARVE_TRY(writer->list(kRootIno, "", [&](std::string_view, const OpenEntry&) {
    is_empty = false;
    return false;
  }));
  if (!is_empty) return false;
  writer.reset();
  repo::drop_version(repository, files, request.drop, info, false);
  base::log(base::LogLevel::kInfo,
            info.name + ", which an interrupted store left empty, is dropped");
  return true;
}

}  // namespace

namespace repo {

Result<VersionInfo> open_or_continue(Repository& repository, io::FileSystem& files,
                                     const StoreRequest& request, SourceMemory& memory,
                                     const NewFile& root) {
  const auto open = [&](const SeriesInfo& series) -> Result<VersionInfo> {
    auto writer = repository.writer(series.id);
    if (writer) {
      const VersionInfo info = (*writer)->info();
      if (info.name == request.version) {
        VARVE_TRY_ASSIGN(const bool began, memory.resume(info));
        if (began) return info;
      } else {
        VARVE_TRY_ASSIGN(const bool taken, take_over(repository, request, info, memory));
        if (taken) return (*writer)->info();
      }
      VARVE_TRY_ASSIGN(const bool dropped, drop_empty(repository, files, request, *writer, memory));
      if (!dropped && info.name == request.version) {
        VARVE_TRY(memory.check_no_other_began(info));
        return info;
      }
    }
    if (!writer && writer.error().code() != ErrorCode::kNotFound) return std::move(writer).error();
    if (writer) writer->reset();  // A held writer would prevent the seal.
    return memory.open_version(series.id, root);
  };
  return open_in_series(repository, request.series, open);
}

std::function<void(const VersionInfo& sealed)> keeper_of(Repository& repository,
                                                         io::FileSystem& files,
                                                         const SourceMemory& memory) {
  auto states = memory.states();
  if (!states) return {};
  return [&repository, &files, states = std::move(states)](const VersionInfo& sealed) {
    keep_states(repository, files, *states, sealed);
  };
}

Result<StoredVersion> store_version(Repository& repository, io::FileSystem& files,
                                    const StoreRequest& request,
                                    const std::function<bool(const TransferProgress&)>& progress) {
  VARVE_TRY(check_store_options(request.options));
  StoreOptions options = request.options;
  VARVE_TRY_ASSIGN(const DirectoryIdentity own,
                   find_own_folder(repository.present_path(), request.directory));
  options.without_entries.insert(options.without_entries.begin(), own);
  std::error_code error;
  const auto source = std::filesystem::canonical(request.directory, error);
  if (error) return base::io_error(request.directory, error.value());
  VARVE_TRY_ASSIGN(const NewFile root, root_like(request.directory));
  // A version must not be opened for an unreadable directory.
  VARVE_TRY(transfer::check_source(request.directory, options));
  VARVE_TRY_ASSIGN(auto guard, SourceGuard::create(repository, request));
  VARVE_TRY(guard.check_before_opening());
  const bool had_series = repository.find_series(request.series).has_value();
  const bool had_version = has_open_version(repository, request.series, request.version);
  SourceMemory memory(repository, files, request, source.string());
  StoredVersion stored;
  VARVE_TRY_ASSIGN(stored.info, open_or_continue(repository, files, request, memory, root));
  const auto import = [&]() -> Result<TransferReport> {
    VARVE_TRY_ASSIGN(const auto writer, repository.writer(stored.info.series));
    VARVE_TRY_ASSIGN(auto report, transfer::import_tree(*writer, request.directory, progress,
                                                        options, memory.tracking()));
    // The version of another command may have more than the source.
    if (memory.tracking() != nullptr || !had_version)
      VARVE_TRY(guard.check_stored(*writer, report));
    VARVE_TRY(mark_problems(*writer, report.problems.size()));
    VARVE_TRY(writer->sync());
    return report;
  };
  auto report = import();
  if (!report && report.error().code() == ErrorCode::kRefused) {
    drop_version(repository, files, request.drop, stored.info, !had_series);
    note_refused(repository, request.series, RefusalReason::kShrunk);
  }
  if (!report) return std::move(report).error();
  stored.report = std::move(*report);
  VARVE_TRY(memory.finish());
  stored.keep_states = keeper_of(repository, files, memory);
  return stored;
}

Result<StorePlan> plan_store(
    Repository& repository, io::FileSystem& files, const StoreRequest& request,
    const std::function<void(StoreChange change, const std::string& path)>& changed,
    const std::function<bool(const TransferProgress&)>& progress) {
  VARVE_TRY(check_store_options(request.options));
  VARVE_TRY(root_like(request.directory));
  VARVE_TRY(transfer::check_source(request.directory, request.options));
  StoreOptions options = request.options;
  VARVE_TRY_ASSIGN(const DirectoryIdentity own,
                   find_own_folder(repository.present_path(), request.directory));
  options.without_entries.insert(options.without_entries.begin(), own);
  std::error_code error;
  const auto source = std::filesystem::canonical(request.directory, error);
  if (error) return base::io_error(request.directory, error.value());
  SourceMemory memory(repository, files, request, source.string());
  std::optional<SourceMemory::Known> known;
  if (const auto series = repository.find_series(request.series)) known = memory.look(series->id);
  std::shared_ptr<VersionReader> reader;
  if (known) {
    VARVE_TRY_ASSIGN(reader, repository.reader(known->version.series, known->version.number));
  }
  const transfer::PlanBase base{reader.get(), known ? known->states.get() : nullptr,
                                &memory.clock()};
  VARVE_TRY_ASSIGN(auto plan,
                   transfer::plan_tree(request.directory, options, base, changed, progress));
  VARVE_TRY_ASSIGN(auto guard, SourceGuard::create(repository, request));
  VARVE_TRY(guard.judge(plan));
  return plan;
}

}  // namespace repo

Result<void> claim_time(Repository& repository, const VersionInfo& version, const Timestamp& time) {
  VARVE_TRY_ASSIGN(const auto writer, repository.writer(version.series));
  if (writer->info().number != version.number) {
    return Error(ErrorCode::kNotFound, version.name + " is not open");
  }
  return writer->set_xattr(kRootIno, catalog::kClaimedAttribute,
                           catalog::encode_claimed_time(version.number, time), XattrMode::kAny);
}

Result<SealOutcome> seal_stored(Repository& repository, const StoredVersion& stored) {
  VARVE_TRY_ASSIGN(auto sealed, repository.seal(stored.info.series, stored.info.number, ""));
  if (stored.keep_states) stored.keep_states(sealed.info);
  return sealed;
}

}  // namespace varve
