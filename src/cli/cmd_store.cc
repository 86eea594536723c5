// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/interruption.h"
#include "cli/command.h"
#include "cli/known_damage.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/owed_arranging.h"
#include "cli/own_mounts.h"
#include "cli/progress.h"
#include "cli/quantity.h"
#include "cli/replication.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "cli/store_planning.h"
#include "cli/store_source.h"
#include "cli/stream_input.h"
#include "cli/version_path.h"
#include "control/local_control.h"
#include "control/repository_control.h"
#include "control/stop_request.h"
#include "control/store_task.h"
#include "varve/backup.h"
#include "varve/store.h"
#include "varve/version_name.h"

namespace varve::cli {
namespace {

struct StoreArguments {
  std::string repository;
  std::string version;
  std::string directory;
  std::string index_memory;
  StreamArguments stream;
  std::string time;
  SourceArguments source;
  bool dry_run = false;
  bool seal = false;
  bool keep_open = false;
  bool no_arrange = false;
  bool no_wait = false;
  bool checksum = false;
  bool allow_shrunk = false;
  bool progress = false;
  bool json = false;
};

/// Prints the version, with the present sizes.
void print_stored(const VersionInfo& version, const TransferReport& report,
                  const StoreArguments& options, const Context& context) {
  if (options.json) {
    Json object = version_json(version);
    object["unchanged"] = report.unchanged;
    object["removed"] = report.removed;
    object["read_bytes"] = report.bytes;
    object["problems"] = report.problems.size();
    print_json("version", std::move(object));
  } else if (version.state == VersionState::kSealed && !context.quiet) {
    print(version_summary(version));
  }
}

/// Returns true if the version is to stay open after the store.
bool stays_open(const VersionPath& path, const StoreArguments& options) {
  return options.keep_open || (is_partial_name(path.version) && !options.seal);
}

void report_left_out(const std::string& folder) {
  report_problems({folder + " is this repository or its mount; stored as an empty directory"});
}

void note_other_device(const Context& context, const std::string& folder) {
  note(context, folder + " is another file system or subvolume; stored as an empty directory (-x)");
}

/// Returns the request for a directory. Reads the lists named by the options.
Result<StoreRequest> directory_request(const VersionPath& path, const StoreArguments& options,
                                       const Context& context, Progress& progress,
                                       const control::StopRequest& stop) {
  StoreRequest request;
  VARVE_TRY_ASSIGN(request.options, read_source_options(options.source, options.directory, stop));
  request.series = path.series;
  request.version = path.version;
  request.directory = options.directory;
  request.seals = !stays_open(path, options);
  request.read_all = options.checksum;
  request.guard = !options.allow_shrunk;
  VARVE_TRY_ASSIGN(const std::string repository,
                   repository_at(options.repository, control::Purpose::kLook));
  request.options.without_entries = find_own_mounts(repository, options.directory);
  request.options.left_out = [&progress](const std::string& folder) {
    progress.clear();
    report_left_out(folder);
  };
  request.options.other_device = [&progress, &context](const std::string& folder) {
    progress.clear();
    note_other_device(context, folder);
  };
  return request;
}

using OnProgress = std::function<bool(const TransferProgress&)>;
/// Stores the source named by the options.
using Storing = std::function<Result<StoredVersion>(Repository&, const OnProgress&)>;

/// Lifetime: `stream` and `stop` outlive the result.
Storing stream_storing(const StoreArguments& options, const VersionPath& path, StreamInput& stream,
                       const control::StopRequest& stop) {
  StreamRequest request;
  request.series = path.series;
  request.version = path.version;
  request.file = options.stream.file();
  request.seals = !stays_open(path, options);
  request.refuses_empty = !options.stream.allow_empty;
  request.confirm = [&stream, &stop] { return stream.finish(stop); };
  return [request, &stream](Repository& repository, const OnProgress& on_progress) {
    if (auto started = stream.start(); !started) {
      return Result<StoredVersion>(std::move(started).error());
    }
    auto stored = repository.store_stream(request, stream.descriptor()->get(), on_progress);
    return request.file.empty() ? std::move(stored) : as_usage(std::move(stored));
  };
}

Result<TransferReport> store_and_seal(Repository& repository, const VersionPath& path,
                                      const StoreArguments& options, const Storing& storing,
                                      const Context& context, Progress& progress,
                                      const control::StopRequest& stop) {
  std::optional<Timestamp> claimed;
  if (!options.time.empty()) {
    VARVE_TRY_ASSIGN(claimed, parse_time(options.time));
  }
  VARVE_TRY_ASSIGN(StoredVersion stored, storing(repository, [&](const TransferProgress& done) {
                     progress.update(done.bytes_done, done.bytes_total, done.files_done);
                     return !stop.stopped();
                   }));
  progress.clear();
  if (claimed) VARVE_TRY(claim_time(repository, stored.info, *claimed));
  if (stays_open(path, options)) {
    VARVE_TRY_ASSIGN(const auto writer, repository.writer(stored.info.series));
    VARVE_TRY(writer->sync());
    print_stored(writer->info(), stored.report, options, context);
    return std::move(stored.report);
  }
  VARVE_TRY_ASSIGN(const SealOutcome sealed, seal_stored(repository, stored));
  print_stored(sealed.info, stored.report, options, context);
  control::LocalControl control(repository);
  report_lost_files(control, sealed.info.series_name + "/" + sealed.info.name, options.json);
  if (!options.no_arrange) {
    arrange_owed(control, {path.series}, stop, progress, context);
  }
  return std::move(stored.report);
}

StoreWaits waits_of(const StoreArguments& options, const Context& context,
                    const control::StopRequest& stop) {
  return {.wanted = !options.no_wait, .shows_progress = !context.quiet, .stopped = [&stop] {
            return stop.stopped();
          }};
}

/// Asks the daemon that has the repository mounted to do the task. Sets `begun` to false once the
/// version is complete.
Result<TransferReport> store_in_daemon(const StoreArguments& options, control::StoreTask task,
                                       const Context& context, Progress& progress,
                                       const control::StopRequest& stop, bool& begun) {
  if (!options.time.empty()) {
    VARVE_TRY_ASSIGN(task.time, parse_time(options.time));
  }
  // The wait for the lock is over, unless the daemon is just ending.
  const auto most = std::min(lock_wait().most, control::kEndingMax);
  VARVE_TRY_ASSIGN(auto daemon,
                   open_control(options.repository, control::Purpose::kChange, {}, {.most = most}));
  auto stored = daemon->store(task, stop, [&](const TransferProgress& done) {
    progress.update(done.bytes_done, done.bytes_total, done.files_done);
  });
  progress.clear();
  if (!options.stream.file().empty()) stored = as_usage(std::move(stored));
  if (stored) {
    for (const std::string& folder : stored->left_out) report_left_out(folder);
    for (const std::string& folder : stored->other_devices) note_other_device(context, folder);
    print_stored(stored->version, stored->report, options, context);
    report_lost_files(*daemon, stored->version.series_name + "/" + stored->version.name,
                      options.json);
  }
  VARVE_TRY_ASSIGN(auto reply, close_after(*daemon, std::move(stored)));
  daemon.reset();  // A process can open the catalog only once at a time.
  begun = false;
  VARVE_TRY(wait_for_replication(options.repository, reply.version,
                                 waits_of(options, context, stop), reply.version.sealed_at));
  return std::move(reply.report);
}

Result<control::StoreTask> directory_task(const StoreArguments& options, const VersionPath& path,
                                          const StoreRequest& request) {
  VARVE_TRY_ASSIGN(control::StoreTask task,
                   control::store_task(path.series + "/" + path.version, request));
  VARVE_TRY(leave_mounts_out(options.repository, task));
  return task;
}

/// Lifetime: `stream` and `stop` outlive the result.
Result<control::StoreTask> stream_task(const StoreArguments& options, const VersionPath& path,
                                       StreamInput& stream, const control::StopRequest& stop) {
  VARVE_TRY(stream.start());
  VARVE_TRY(check_outside_mounts(options.repository, stream.descriptor()->get()));
  control::StoreTask task;
  task.version = path.series + "/" + path.version;
  task.seals = !stays_open(path, options);
  task.guard = !options.stream.allow_empty;
  task.stream =
      control::StreamSource{options.stream.file(), stream.descriptor(), {}, [&stream, &stop] {
                              return stream.finish(stop);
                            }};
  return task;
}

/// Returns how a store waits for the lock. A daemon reads a directory by the path, but a stream by
/// the descriptor.
control::LockWait turn_of(const std::optional<StreamInput>& stream,
                          const control::StopRequest& stop) {
  control::LockWait wait = lock_wait(control::kTurnMax);
  wait.reads_files = !stream;
  wait.stop = stop.descriptor();
  return wait;
}

// Sets `begun` once the repository is open, and to false again once the version is complete.
Result<TransferReport> store(const StoreArguments& options, const Context& context, bool& begun) {
  VARVE_TRY_ASSIGN(const VersionPath path, require_version(options.version, false));
  VARVE_TRY(check_new_names(path, VersionState::kOpen));
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("storing", shown);
  control::StopRequest stop;
  const SignalWatch signals({.stop =
                                 [&] {
                                   stop.stop();
                                   base::InterruptionScope::interrupt_all();
                                 },
                             .report = [&] { progress.print_line(); }});
  Storing storing;
  StoreRequest request;
  std::optional<StreamInput> stream;
  if (options.stream.any()) {
    VARVE_TRY_ASSIGN(auto opened, StreamInput::open(options.stream, stop));
    storing = stream_storing(options, path, stream.emplace(std::move(opened)), stop);
  } else {
    VARVE_TRY_ASSIGN(request, directory_request(path, options, context, progress, stop));
    if (options.dry_run) {
      return print_plan(options.repository, request, options.json, progress, stop);
    }
    storing = [request](Repository& repository, const OnProgress& on_progress) {
      return repository.store_version(request, on_progress);
    };
  }
  WriteChoices choices{.waits = waits_of(options, context, stop), .lock = turn_of(stream, stop)};
  if (!options.index_memory.empty()) {
    VARVE_TRY_ASSIGN(choices.index_bytes, parse_bytes(options.index_memory));
  }
  auto repository = open_to_write(options.repository, choices);
  const bool is_locked = !repository && repository.error().code() == ErrorCode::kLocked;
  begun = repository || is_locked;
  if (is_locked) {
    VARVE_TRY_ASSIGN(control::StoreTask task, stream ? stream_task(options, path, *stream, stop)
                                                     : directory_task(options, path, request));
    return store_in_daemon(options, std::move(task), context, progress, stop, begun);
  }
  if (!repository) return std::move(repository).error();
  auto report = store_and_seal(**repository, path, options, storing, context, progress, stop);
  auto closed = (*repository)->close();
  if (closed) return report;
  if (report) {
    begun = false;  // The version is complete locally; only the upload is not.
    return std::move(closed).error();
  }
  return std::move(report).error().with_context(closed.error().message());
}

/// Returns the name of a new version of an instance: the time in UTC.
std::string version_of(const Instance& instance) {
  const std::string series = instance.value("VARVE_SERIES");
  if (series.empty()) return {};
  std::string time = iso_time(base::SystemClock().now());
  time.resize(time.find('.'));
  std::erase(time, ':');
  return series + "/" + time + "Z";
}

Result<void> take_arguments(StoreArguments& options, const Instance& instance) {
  if (!options.stream.any()) {
    if (options.stream.allow_empty) {
      return usage_error(
          "--allow-empty is about streams and archives; an empty directory needs --allow-shrunk");
    }
    VARVE_TRY(take_repository({{"REPO", &options.repository},
                               {"VERSION", &options.version, version_of(instance)},
                               {"DIR", &options.directory, instance.value("VARVE_SOURCE")}}));
    std::error_code error;
    if (!std::filesystem::exists(options.directory, error) &&
        std::filesystem::is_directory(options.version, error)) {
      return usage_error(options.version + " is a directory, and " + options.directory +
                         " is none; the arguments are REPO SERIES/VERSION DIR");
    }
    return {};
  }
  VARVE_TRY(take_repository(
      {{"REPO", &options.repository}, {"VERSION", &options.version, version_of(instance)}}));
  if (chooses_entries(options.source) || options.checksum) {
    return usage_error(
        "--checksum and the options that choose files of a directory have no effect on "
        "--stdin, --stdin-from-command and --from-tar; leave them out");
  }
  if (options.directory.empty()) return {};
  return usage_error(
      "a directory cannot be stored together with --stdin, --stdin-from-command or "
      "--from-tar; give REPO and SERIES/VERSION only");
}

int run_store(StoreArguments options, const Context& context) {
  if (const auto given = take_arguments(options, context.instance); !given)
    return fail(given.error());
  bool begun = false;
  const auto report = store(options, context, begun);
  if (!report) {
    if (begun && !options.stream.any() && !options.dry_run &&
        (report.error().code() == ErrorCode::kInterrupted ||
         report.error().code() == ErrorCode::kNoSpace)) {
      note(context, "the version stays open; the same command continues it");
    }
    if (report.error().code() == ErrorCode::kExists) {
      return fail(Error(report.error()).with_more(advice_on_upload(options.repository)));
    }
    return fail(report.error());
  }
  report_problems(report->problems);
  const std::string unchanged =
      report->unchanged == 0
          ? ""
          : fmt::format("; {} of them unchanged and not read", report->unchanged);
  note(context,
       fmt::format("{} {} entries with {}{}{}", options.dry_run ? "would store" : "stored",
                   report->entries, size_text(report->bytes, false), unchanged,
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
  auto dry_run = command.add_flag("-n,--dry-run", options->dry_run,
                                  "Store nothing; print the changes of the directory");
  auto allow_shrunk =
      command.add_flag("--allow-shrunk", options->allow_shrunk,
                       "Store the directory even if it is empty, or has lost most of its names or "
                       "content since the newest version");
  add_stream_options(command, options->stream, {dry_run, allow_shrunk});
  command
      .add_option("--time", options->time,
                  "Time of the data, which the version shows beside the time of its seal: "
                  "2027-01-31 or 2027-01-31T18:30[:15][Z]")
      .type_name("TIME");
  auto seal = command.add_flag("--seal", options->seal,
                               "Seal at the end even if the name ends in .partial");
  command.add_flag("--keep-open", options->keep_open, "Do not seal at the end").excludes(seal);
  command.add_option("--index-memory", options->index_memory,
                     "Memory for the index of known chunks, such as 1G (default: 256M)");
  command.add_flag("--checksum", options->checksum,
                   "Read every file, also those that seem unchanged since the last store");
  add_source_options(command, options->source);
  add_no_arrange_flag(command, options->no_arrange);
  add_no_wait_flag(command, options->no_wait);
  command.add_json_flag(options->json, "one for the version");
  command.add_progress_flag(options->progress);
  command.add_alias("backup");
  command.run([options, &context] {
    options->stream.command = context.stored_command;
    return run_store(*options, context);
  });
}

}  // namespace varve::cli
