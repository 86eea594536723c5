// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
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
#include "base/system_error.h"
#include "base/unique_fd.h"
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
#include "cli/store_source.h"
#include "cli/version_path.h"
#include "control/key_source.h"
#include "control/local_control.h"
#include "control/mounted_path.h"
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
  std::string stdin_name;
  std::string tar;
  std::string time;
  SourceArguments source;
  bool dry_run = false;
  bool seal = false;
  bool keep_open = false;
  bool no_arrange = false;
  bool no_wait = false;
  bool checksum = false;
  bool progress = false;
  bool json = false;
};

/// Prints the version, with the sizes that it has now.
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

bool is_stream(const StoreArguments& options) {
  return !options.stdin_name.empty() || !options.tar.empty();
}

/// Returns true if the version is to stay open after the store.
bool stays_open(const VersionPath& path, const StoreArguments& options) {
  return options.keep_open || (is_partial_name(path.version) && !options.seal);
}

void report_left_out(const std::string& folder) {
  report_problems({folder + " is this repository or its mount; stored as an empty directory"});
}

/// Returns the request for a directory. Reads the lists that the options name.
Result<StoreRequest> directory_request(const VersionPath& path, const StoreArguments& options,
                                       Progress& progress) {
  StoreRequest request;
  VARVE_TRY_ASSIGN(request.options, read_source_options(options.source, options.directory));
  request.series = path.series;
  request.version = path.version;
  request.directory = options.directory;
  request.seals = !stays_open(path, options);
  request.read_all = options.checksum;
  VARVE_TRY_ASSIGN(const std::string repository,
                   repository_at(options.repository, control::Purpose::kLook));
  request.options.without_entries = find_own_mounts(repository, options.directory);
  request.options.left_out = [&progress](const std::string& folder) {
    progress.clear();
    report_left_out(folder);
  };
  return request;
}

using OnProgress = std::function<bool(const TransferProgress&)>;
/// Stores the source that the options name.
using Storing = std::function<Result<StoredVersion>(Repository&, const OnProgress&)>;

using Stream = std::shared_ptr<const base::UniqueFd>;

/// Opens the stream that the options name.
Result<Stream> open_stream(const StoreArguments& options) {
  const auto key = control::key_place_of_environment();
  const bool is_input = options.tar.empty() || options.tar == "-";
  if (is_input && (key.passphrase_file == "-" || key.key_file == "-")) {
    return usage_error(
        "standard input cannot be both the key and the data; name a file of the key");
  }
  auto input = std::make_shared<const base::UniqueFd>(
      is_input ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
               : ::open(options.tar.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!input->valid()) {
    return base::system_error(options.tar.empty() ? "standard input" : options.tar, errno);
  }
  if (::isatty(input->get()) == 1) {
    return usage_error("standard input is a terminal; connect it to a file or a pipe");
  }
  return Stream(std::move(input));
}

Storing stream_storing(const StoreArguments& options, const VersionPath& path,
                       const Stream& stream) {
  StreamRequest request;
  request.series = path.series;
  request.version = path.version;
  request.file = options.stdin_name;
  request.seals = !stays_open(path, options);
  return [request, stream](Repository& repository, const OnProgress& on_progress) {
    auto stored = store_stream(repository, request, stream->get(), on_progress);
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

const char* word_of(StoreChange change) {
  switch (change) {
    case StoreChange::kAdded:
      return "added";
    case StoreChange::kChanged:
      return "changed";
    case StoreChange::kMetadata:
      return "metadata";
    case StoreChange::kRemoved:
      return "removed";
  }
  return "";
}

StoreWaits waits_of(const StoreArguments& options, const Context& context,
                    const control::StopRequest& stop) {
  return {.wanted = !options.no_wait, .shows_progress = !context.quiet, .stopped = [&stop] {
            return stop.stopped();
          }};
}

/// Has the daemon that holds the repository do the task. Sets `begun` to false once the version
// is complete.
Result<TransferReport> store_in_daemon(const StoreArguments& options, control::StoreTask task,
                                       const Context& context, Progress& progress,
                                       const control::StopRequest& stop, bool& begun) {
  if (!options.time.empty()) {
    VARVE_TRY_ASSIGN(task.time, parse_time(options.time));
  }
  VARVE_TRY_ASSIGN(auto daemon, open_control(options.repository));
  auto stored = daemon->store(task, stop, [&](const TransferProgress& done) {
    progress.update(done.bytes_done, done.bytes_total, done.files_done);
  });
  progress.clear();
  if (!options.stdin_name.empty()) stored = as_usage(std::move(stored));
  if (stored) {
    for (const std::string& folder : stored->left_out) report_left_out(folder);
    print_stored(stored->version, stored->report, options, context);
    report_lost_files(*daemon, stored->version.series_name + "/" + stored->version.name,
                      options.json);
  }
  VARVE_TRY_ASSIGN(auto reply, close_after(*daemon, std::move(stored)));
  daemon.reset();  // A process opens the catalog only once at a time.
  begun = false;
  VARVE_TRY(
      wait_for_replication(options.repository, reply.version, waits_of(options, context, stop)));
  return std::move(reply.report);
}

Result<control::StoreTask> directory_task(const StoreArguments& options, const VersionPath& path,
                                          const StoreRequest& request) {
  VARVE_TRY_ASSIGN(control::StoreTask task,
                   control::store_task(path.series + "/" + path.version, request));
  VARVE_TRY(leave_mounts_out(options.repository, task));
  return task;
}

Result<control::StoreTask> stream_task(const StoreArguments& options, const VersionPath& path,
                                       const Stream& stream) {
  VARVE_TRY(check_outside_mounts(options.repository, stream->get()));
  control::StoreTask task;
  task.version = path.series + "/" + path.version;
  task.seals = !stays_open(path, options);
  task.stream = control::StreamSource{options.stdin_name, stream, {}};
  return task;
}

/// Prints the changes that a store would make.
Result<TransferReport> plan(const StoreArguments& options, const StoreRequest& request,
                            Progress& progress, const control::StopRequest& stop) {
  VARVE_TRY_ASSIGN(const auto repository, open_to_read(options.repository));
  const auto print_change = [&](StoreChange change, const std::string& path) {
    progress.clear();
    if (options.json) {
      Json object{{"change", word_of(change)}};
      put_name(object, "path", path);
      print_json("change", std::move(object));
    } else {
      print(fmt::format("{} {}\n", static_cast<char>(change), name_text(path)));
    }
  };
  VARVE_TRY_ASSIGN(const StorePlan planned, plan_store(*repository, request, print_change,
                                                       [&](const TransferProgress& done) {
                                                         progress.update(0, 0, done.files_done);
                                                         return !stop.stopped();
                                                       }));
  progress.clear();
  TransferReport report;
  report.entries = planned.entries;
  report.unchanged = planned.unchanged;
  report.removed = planned.removed;
  report.bytes = planned.bytes;
  report.problems = planned.problems;
  if (options.json) {
    print_json("store_plan", {{"entries", report.entries},
                              {"unchanged", report.unchanged},
                              {"removed", report.removed},
                              {"read_bytes", report.bytes},
                              {"problems", report.problems.size()}});
  }
  return report;
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
  Stream stream;
  if (is_stream(options)) {
    VARVE_TRY_ASSIGN(stream, open_stream(options));
    storing = stream_storing(options, path, stream);
  } else {
    VARVE_TRY_ASSIGN(request, directory_request(path, options, progress));
    if (options.dry_run) return plan(options, request, progress, stop);
    storing = [request](Repository& repository, const OnProgress& on_progress) {
      return store_version(repository, request, on_progress);
    };
  }
  WriteChoices choices{.waits = waits_of(options, context, stop)};
  if (!options.index_memory.empty()) {
    VARVE_TRY_ASSIGN(choices.index_bytes, parse_bytes(options.index_memory));
  }
  auto repository = open_to_write(options.repository, choices);
  const bool is_locked = !repository && repository.error().code() == ErrorCode::kLocked;
  begun = repository || is_locked;
  if (is_locked) {
    VARVE_TRY_ASSIGN(control::StoreTask task, stream ? stream_task(options, path, stream)
                                                     : directory_task(options, path, request));
    return store_in_daemon(options, std::move(task), context, progress, stop, begun);
  }
  if (!repository) return std::move(repository).error();
  auto report = store_and_seal(**repository, path, options, storing, context, progress, stop);
  auto closed = (*repository)->close();
  if (closed) return report;
  if (report) {
    begun = false;  // The version is complete here; only its upload is not.
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
  if (!is_stream(options)) {
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
        "--stdin and --from-tar; leave them out");
  }
  if (options.directory.empty()) return {};
  return usage_error(
      "a directory cannot be stored together with --stdin or "
      "--from-tar; give REPO and SERIES/VERSION only");
}

int run_store(StoreArguments options, const Context& context) {
  if (const auto given = take_arguments(options, context.instance); !given)
    return fail(given.error());
  bool begun = false;
  const auto report = store(options, context, begun);
  if (!report) {
    if (begun && !is_stream(options) && !options.dry_run &&
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
  auto name = command
                  .add_option("--stdin", options->stdin_name,
                              "Store standard input as the only file of the version, in place of "
                              "a directory")
                  .not_empty()
                  .type_name("NAME");
  auto tar = command
                 .add_option("--from-tar", options->tar,
                             "Store the members of a tar, pax, cpio or zip archive, in place of a "
                             "directory; - is standard input")
                 .type_name("FILE")
                 .excludes(name);
  command
      .add_flag("-n,--dry-run", options->dry_run,
                "Store nothing; print the changes of the directory")
      .excludes(name)
      .excludes(tar);
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
  command.run([options, &context] { return run_store(*options, context); });
}

}  // namespace varve::cli
