// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/owed_arranging.h"
#include "cli/progress.h"
#include "cli/quantity.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "cli/version_path.h"
#include "control/local_control.h"
#include "control/mounted_path.h"
#include "control/stop_request.h"
#include "varve/backup.h"
#include "varve/version_name.h"

namespace varve::cli {
namespace {

struct StoreArguments {
  std::string repository;
  std::string version;
  std::string directory;
  std::string index_memory;
  bool seal = false;
  bool keep_open = false;
  bool no_arrange = false;
  bool checksum = false;
  bool progress = false;
};

/// Returns the mount points of the repository in the directory: their entries are stored already.
std::vector<DirectoryIdentity> find_own_mounts(const std::string& repository,
                                               const std::string& directory) {
  std::error_code error;
  const auto own = std::filesystem::canonical(repository, error);
  const auto source = std::filesystem::canonical(directory, error);
  const auto mounts = control::find_mounts_of(own);
  if (error || !mounts) return {};  // store_version() returns the error.
  std::vector<DirectoryIdentity> found;
  for (const auto& mount : *mounts) {
    const std::filesystem::path point = mount.mount_point;
    const auto differ = std::mismatch(source.begin(), source.end(), point.begin(), point.end());
    struct stat status {};
    if (differ.first == source.end() && ::lstat(point.c_str(), &status) == 0) {
      found.push_back({status.st_dev, status.st_ino});
    }
  }
  return found;
}

Result<TransferReport> store_and_seal(Repository& repository, const VersionPath& path,
                                      const StoreArguments& options, const Context& context,
                                      Progress& progress, const control::StopRequest& stop) {
  StoreRequest request;
  request.series = path.series;
  request.version = path.version;
  request.directory = options.directory;
  const bool stays_open = options.keep_open || (is_partial_name(path.version) && !options.seal);
  request.seals = !stays_open;
  request.read_all = options.checksum;
  request.options.without_entries = find_own_mounts(options.repository, options.directory);
  request.options.left_out = [&](const std::string& folder) {
    progress.clear();
    report_problems({folder + " is this repository or its mount; stored as an empty directory"});
  };
  VARVE_TRY_ASSIGN(StoredVersion stored,
                   store_version(repository, request, [&](const TransferProgress& done) {
                     progress.update(done.bytes_done, done.bytes_total, done.files_done);
                     return !stop.stopped();
                   }));
  progress.clear();
  if (stays_open) return std::move(stored.report);
  VARVE_TRY_ASSIGN(const SealOutcome sealed, seal_stored(repository, stored));
  print(version_summary(sealed.info));
  if (!options.no_arrange) {
    control::LocalControl control(repository);
    arrange_owed(control, {path.series}, stop, progress, context);
  }
  return std::move(stored.report);
}

Result<TransferReport> store(const StoreArguments& options, const Context& context) {
  VARVE_TRY_ASSIGN(const VersionPath path, require_version(options.version, false));
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("storing", shown);
  control::StopRequest stop;
  const SignalWatch signals(
      {.stop = [&] { stop.stop(); }, .report = [&] { progress.print_line(); }});
  std::optional<std::uint64_t> index_bytes;
  if (!options.index_memory.empty()) {
    VARVE_TRY_ASSIGN(index_bytes, parse_bytes(options.index_memory));
  }
  auto repository = open_to_write(options.repository, index_bytes);
  if (!repository && repository.error().code() == ErrorCode::kLocked) {
    return std::move(repository)
        .error()
        .with_context("if the repository is mounted, copy into the mount instead");
  }
  if (!repository) return std::move(repository).error();
  auto report = store_and_seal(**repository, path, options, context, progress, stop);
  auto closed = (*repository)->close();
  if (closed) return report;
  if (report) return std::move(closed).error();
  return std::move(report).error().with_context(closed.error().message());
}

int run_store(StoreArguments options, const Context& context) {
  if (const auto given = take_repository({{"REPO", &options.repository},
                                          {"VERSION", &options.version},
                                          {"DIR", &options.directory}});
      !given) {
    return fail(given.error());
  }
  const auto report = store(options, context);
  if (!report) {
    if (report.error().code() == ErrorCode::kInterrupted ||
        report.error().code() == ErrorCode::kNoSpace) {
      note(context, "the version stays open; the same command continues it");
    }
    return fail(report.error());
  }
  report_problems(report->problems);
  note(
      context,
      fmt::format("stored {} entries with {}{}{}", report->entries, size_text(report->bytes, false),
                  report->unchanged == 0
                      ? ""
                      : fmt::format("; {} of them unchanged and not read", report->unchanged),
                  report->problems.empty() ? "" : ", but not all; see the messages above"));
  return report->problems.empty() ? kExitOk : kExitIncomplete;
}

}  // namespace

void add_store_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<StoreArguments>();
  auto command = line.add_command("store", "Store a directory as a version, without a mount");
  command.add_repository(options->repository);
  command.add_option(
      "VERSION", options->version,
      "SERIES/VERSION; creates the series if needed, and continues an open version of this name");
  command.add_option("DIR", options->directory, "Directory to store");
  auto seal = command.add_flag("--seal", options->seal,
                               "Seal at the end even if the name ends in .partial");
  command.add_flag("--keep-open", options->keep_open, "Do not seal at the end").excludes(seal);
  command.add_option("--index-memory", options->index_memory,
                     "Memory for the index of known chunks, such as 1G (default: 256M)");
  command.add_flag("--checksum", options->checksum,
                   "Read every file, also those that seem unchanged since the last store");
  add_no_arrange_flag(command, options->no_arrange);
  command.add_progress_flag(options->progress);
  command.add_alias("backup");
  command.run([options, &context] { return run_store(*options, context); });
}

}  // namespace varve::cli
