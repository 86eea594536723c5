// SPDX-License-Identifier: Apache-2.0
// Imports the dated snapshots of a folder. All snapshots have a single identity as a source: so a
// file shared by two successive snapshots through a hard link has the state of the earlier
// snapshot, and is not read. A snapshot with an existing version is left out, so the same command
// continues.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/interruption.h"
#include "base/system_error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/owed_arranging.h"
#include "cli/progress.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "cli/snapshot_list.h"
#include "cli/version_path.h"
#include "control/local_control.h"
#include "control/stop_request.h"
#include "varve/backup.h"

namespace varve::cli {
namespace {

struct ImportArguments {
  std::string repository;
  std::string folder;
  std::string series;
  bool dry_run = false;
  bool no_arrange = false;
  bool json = false;
  bool progress = false;
};

struct ImportOutcome {
  std::size_t imported = 0;
  std::size_t present = 0;
  std::size_t problems = 0;
};

enum class Presence {
  kAbsent,
  kImported,
  kOther,  // Another command sealed a version of this name, perhaps without parts of the snapshot.
};

/// Returns whether a sealed version has the snapshot's name. Only a finished import claims a time.
Result<Presence> find_imported(Repository& repository, const std::string& series,
                               const Snapshot& snapshot) {
  const auto found = repository.find_series(series);
  if (!found && found.error().code() == ErrorCode::kNotFound) return Presence::kAbsent;
  if (!found) return found.error();
  const auto version = repository.find_version(found->id, snapshot.version);
  if (!version && version.error().code() == ErrorCode::kNotFound) return Presence::kAbsent;
  if (!version) return version.error();
  if (version->state != VersionState::kSealed) return Presence::kAbsent;
  return version->claimed_at ? Presence::kImported : Presence::kOther;
}

void report_other(const Snapshot& snapshot, const std::string& series) {
  const std::string name = series + "/" + snapshot.version;
  report_problems({snapshot.directory + ": not imported: " + name +
                   " was not made by an import that was finished; rename it with `varve mv` or "
                   "remove it with `varve rm`, and run `varve import` again"});
}

void print_planned(const Snapshot& snapshot, bool present, const ImportArguments& options) {
  if (options.json) {
    Json object{{"action", present ? "skip" : "import"}};
    put_time(object, "claimed_at", snapshot.time);
    put_name(object, "snapshot", snapshot.directory);
    put_name(object, "series", options.series);
    put_name(object, "version", snapshot.version);
    print_json("snapshot", std::move(object));
    return;
  }
  print(fmt::format("{}  {}  {} -> {}\n", present ? "skip        " : "would import",
                    time_text(snapshot.time), name_text(snapshot.directory),
                    name_text(options.series + "/" + snapshot.version)));
}

void print_imported(const VersionInfo& version, const TransferReport& report,
                    const ImportArguments& options, const Context& context) {
  if (!options.json) {
    if (!context.quiet) print(version_summary(version));
    return;
  }
  Json object = version_json(version);
  object["unchanged"] = report.unchanged;
  object["read_bytes"] = report.bytes;
  object["problems"] = report.problems.size();
  print_json("version", std::move(object));
}

Result<void> import_one(Repository& repository, const Snapshot& snapshot, const std::string& folder,
                        const ImportArguments& options, const Context& context, Progress& progress,
                        const control::StopRequest& stop, ImportOutcome& outcome) {
  StoreRequest request;
  request.series = options.series;
  request.version = snapshot.version;
  request.directory = folder + "/" + snapshot.directory;
  request.seals = true;
  request.source = "snapshots in " + folder;
  VARVE_TRY_ASSIGN(StoredVersion stored,
                   repository.store_version(request, [&](const TransferProgress& done) {
                     progress.update(done.bytes_done, done.bytes_total, done.files_done);
                     return !stop.stopped();
                   }));
  progress.clear();
  VARVE_TRY(claim_time(repository, stored.info, snapshot.time));
  VARVE_TRY_ASSIGN(const SealOutcome sealed, seal_stored(repository, stored));
  for (std::string& problem : stored.report.problems) {
    problem.insert(0, snapshot.directory + "/");
  }
  report_problems(stored.report.problems);
  outcome.problems += stored.report.problems.size();
  ++outcome.imported;
  print_imported(sealed.info, stored.report, options, context);
  return finish_output();
}

Result<ImportOutcome> import_into(Repository& repository, const SnapshotList& list,
                                  const std::string& folder, const ImportArguments& options,
                                  const Context& context) {
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("importing", shown);
  control::StopRequest stop;
  const SignalWatch signals({.stop =
                                 [&] {
                                   stop.stop();
                                   base::InterruptionScope::interrupt_all();
                                 },
                             .report = [&] { progress.print_line(); }});
  ImportOutcome outcome;
  for (const Snapshot& snapshot : list.snapshots) {
    VARVE_TRY_ASSIGN(const Presence found, find_imported(repository, options.series, snapshot));
    if (found == Presence::kOther) {
      progress.clear();
      report_other(snapshot, options.series);
      ++outcome.problems;
      continue;
    }
    const bool present = found == Presence::kImported;
    if (present) ++outcome.present;
    if (options.dry_run) {
      print_planned(snapshot, present, options);
    } else if (!present) {
      auto imported =
          import_one(repository, snapshot, folder, options, context, progress, stop, outcome);
      if (!imported) return std::move(imported).error().with_context(snapshot.directory);
    }
  }
  if (outcome.imported > 0 && !options.no_arrange) {
    control::LocalControl control(repository);
    arrange_owed(control, {options.series}, stop, progress, context);
  }
  return outcome;
}

// Sets `begun` once the repository is open.
Result<ImportOutcome> import_folder(const ImportArguments& options, const Context& context,
                                    bool& begun) {
  if (options.series.find('/') != std::string::npos) {
    return usage_error("\"" + options.series +
                       "\" is no name of a series; each snapshot becomes a version");
  }
  VARVE_TRY(check_new_names({options.series, {}, {}}, VersionState::kSealed));
  std::error_code error;
  const auto folder = std::filesystem::canonical(options.folder, error);
  if (error) return base::io_error(options.folder, error.value());
  VARVE_TRY_ASSIGN(const SnapshotList list, list_snapshots(folder.string()));
  if (list.snapshots.empty()) {
    return Error(ErrorCode::kInvalid, folder.string() + " has no directories to import");
  }
  report_problems(list.left_out);
  if (options.dry_run) {
    VARVE_TRY_ASSIGN(const auto repository, open_to_read(options.repository));
    return import_into(*repository, list, folder.string(), options, context);
  }
  auto repository = open_to_write(options.repository);
  if (!repository && repository.error().code() == ErrorCode::kLocked) {
    return std::move(repository).error().with_context("if the repository is mounted, unmount it");
  }
  if (!repository) return std::move(repository).error();
  begun = true;
  auto outcome = import_into(**repository, list, folder.string(), options, context);
  auto closed = (*repository)->close();
  if (closed) return outcome;
  if (outcome) return std::move(closed).error();
  return std::move(outcome).error().with_context(closed.error().message());
}

int run_import(ImportArguments options, const Context& context) {
  if (const auto given = take_repository(
          {{"REPO", &options.repository}, {"DIR", &options.folder}, {"SERIES", &options.series}});
      !given) {
    return fail(given.error());
  }
  bool begun = false;
  const auto outcome = import_folder(options, context, begun);
  if (!outcome) {
    if (begun && !options.dry_run &&
        (outcome.error().code() == ErrorCode::kInterrupted ||
         outcome.error().code() == ErrorCode::kNoSpace)) {
      note(context, "the same command continues the import");
    }
    return fail(outcome.error());
  }
  if (!options.dry_run) {
    note(context,
         fmt::format("imported {} snapshots; {} were versions already{}", outcome->imported,
                     outcome->present, outcome->problems == 0 ? "" : "; see the messages above"));
  }
  return outcome->problems == 0 ? kExitOk : kExitIncomplete;
}

}  // namespace

void add_import_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<ImportArguments>();
  auto command = line.add_command(
      "import", "Make a version of each dated snapshot in a folder, such as those of rsnapshot");
  command.add_repository(options->repository);
  command.add_option("DIR", options->folder, "Folder of the snapshots, each of them a directory");
  command.add_option("SERIES", options->series, "Series of the versions; created if needed");
  command.add_flag("-n,--dry-run", options->dry_run,
                   "Import nothing; print the snapshots, their times and their versions");
  add_no_arrange_flag(command, options->no_arrange);
  command.add_json_flag(options->json, "one for each version");
  command.add_progress_flag(options->progress);
  command.run([options, &context] { return run_import(*options, context); });
}

}  // namespace varve::cli
