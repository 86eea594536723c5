// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_limit.h"
#include "cli/command.h"
#include "cli/copy_place.h"
#include "cli/key_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/owed_arranging.h"
#include "cli/progress.h"
#include "cli/replication.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "cli/ssh_program.h"
#include "control/local_control.h"
#include "control/stop_request.h"
#include "varve/copy.h"
#include "varve/restore.h"

namespace varve::cli {
namespace {

struct CopyArguments {
  std::string repository;
  std::string target;
  std::string ssh;
  std::string remote_program = "varve";
  CopyOptions copy;
  std::string local;
  PlaceOptions store;
  bool no_wait = false;
  bool no_arrange = false;
  bool json = false;
  bool progress = false;
  bool encrypt = false;
  bool plain = false;
  control::KeyPlace target_key;
};

const char* verb_of(CopyAction action, bool dry_run) {
  switch (action) {
    case CopyAction::kCopied:
      return dry_run ? "would copy" : "copied";
    case CopyAction::kRenamed:
      return dry_run ? "would rename" : "renamed";
    case CopyAction::kDeleted:
      return dry_run ? "would delete" : "deleted";
    case CopyAction::kChecked:
      return "verified";
  }
  return "";
}

const char* word_of(CopyAction action) {
  switch (action) {
    case CopyAction::kCopied:
      return "copy";
    case CopyAction::kRenamed:
      return "rename";
    case CopyAction::kDeleted:
      return "delete";
    case CopyAction::kChecked:
      return "verify";
  }
  return "";
}

void print_event(const CopyEvent& event, const CopyArguments& options) {
  const bool dry_run = options.copy.dry_run;
  if (options.json) {
    Json object{{"action", word_of(event.action)}, {"dry_run", dry_run}};
    put_name(object, "series", event.series);
    if (!event.version.empty()) put_name(object, "version", event.version);
    if (event.action == CopyAction::kRenamed) put_name(object, "new_name", event.new_name);
    if (event.action == CopyAction::kCopied && !dry_run) {
      object["changes"] = event.changes;
      object["data_bytes"] = event.data_bytes;
      object["sent_bytes"] = event.sent_bytes;
      object["whole"] = event.whole;
    }
    print_json("copy", std::move(object));
    return;
  }
  const std::string place =
      event.version.empty() ? event.series : event.series + "/" + event.version;
  std::string text = fmt::format("{} {}", verb_of(event.action, dry_run), name_text(place));
  if (event.action == CopyAction::kRenamed) text += " to " + name_text(event.new_name);
  if (event.action == CopyAction::kCopied && !dry_run) {
    text += fmt::format(": {} changes with {}, {} sent{}", event.changes,
                        size_text(event.data_bytes, false), size_text(event.sent_bytes, false),
                        event.whole ? "" : "; without damaged files");
  }
  print(text + "\n");
}

/// The source repository of a copy.
struct Source {
  std::unique_ptr<Repository> repository{};
  bool is_encrypted = false;
  bool key_is_of_target = false;  ///< The source is plain; the user's key belongs to DEST.
};

/// Opens the source. A plain source needs no key: then the user's key is the key of a local DEST.
Result<Source> open_source(const CopyArguments& options, bool target_is_here) {
  base::raise_file_limit();
  VARVE_TRY_ASSIGN(const auto path, repository_at(options.repository, control::Purpose::kLook));
  OpenOptions how = options_to_read(path);
  const auto encryption = read_encryption(path, how.trust_owner);
  const bool is_plain = encryption && !*encryption;
  Source source;
  source.key_is_of_target = how.encrypted_only && is_plain && target_is_here && !options.plain &&
                            options.target_key.empty();
  if (source.key_is_of_target) how.encrypted_only = false;
  VARVE_TRY_ASSIGN(source.repository, Repository::open(path, how));
  source.repository->will_read_once();
  VARVE_TRY_ASSIGN(const auto opened, read_encryption(source.repository->path(), how.trust_owner));
  source.is_encrypted = opened.has_value();
  return source;
}

/// The copy of a command, with the progress shown and the request to stop.
class Copying {
 public:
  Copying(const CopyArguments& options, const Context& context, Repository& source,
          Progress& progress, control::StopRequest& stop)
      : options_(options), context_(context), source_(source), progress_(progress), stop_(stop) {}

  Result<CopyReport> to_folder(const TargetSetup& setup);
  Result<CopyReport> over_ssh(const SshPlace& place, const TargetSetup& setup);

 private:
  Result<CopyReport> run(copy::Target* target);

  const CopyArguments& options_;
  const Context& context_;
  Repository& source_;
  Progress& progress_;
  control::StopRequest& stop_;
  std::vector<std::string> changed_;  // Series with a new version.
};

Result<CopyReport> Copying::run(copy::Target* target) {
  CopyObserver observer;
  observer.progress = [&](const TransferProgress& done) {
    progress_.update(done.bytes_done, 0, done.files_done);
    return !stop_.stopped();
  };
  observer.done = [&](const CopyEvent& event) {
    progress_.clear();
    if (options_.json || !context_.quiet) print_event(event, options_);
    const bool renames_series = event.action == CopyAction::kRenamed && event.version.empty();
    if (event.action != CopyAction::kChecked) {
      changed_.push_back(renames_series ? event.new_name : event.series);
    }
    // A program that reads the lines may wait for each line.
    static_cast<void>(finish_output());
  };
  VARVE_TRY_ASSIGN(const bool is_older, source_.has_older_catalog());
  if (is_older && options_.copy.prune) {
    return Error(ErrorCode::kCorrupt,
                 source_.path() +
                     ": the catalog is older than the rest of the repository, so newer versions "
                     "seem deleted. Nothing was deleted; run `varve repair`, then copy again");
  }
  auto report = copy_versions(source_, target, options_.copy, observer);
  progress_.clear();
  if (report && is_older) {
    report->problems.push_back(
        "newer versions are not copied: the catalog of the source is older than the rest of the "
        "repository; run `varve repair`, then copy again");
  }
  if (!report && stop_.stopped() && report.error().code() == ErrorCode::kUnavailable) {
    report = Error(ErrorCode::kInterrupted, "interrupted");
  }
  const bool goes_on = !report && !options_.copy.dry_run &&
                       (report.error().code() == ErrorCode::kInterrupted ||
                        report.error().code() == ErrorCode::kNoSpace);
  if (goes_on) note(context_, "the same command continues the copy");
  return report;
}

Result<CopyReport> Copying::to_folder(const TargetSetup& setup) {
  VARVE_TRY_ASSIGN(const auto place,
                   find_copy_place(options_.target, options_.local, options_.store.place,
                                   control::Purpose::kLook));
  const std::string& path = place.folder;
  // A process must not open the source a second time.
  std::error_code absent;
  if (std::filesystem::equivalent(path, source_.present_path(), absent)) {
    return Error(ErrorCode::kInvalid,
                 options_.target + " is the source itself; give another folder");
  }
  VARVE_TRY(check_outside_repositories(path, PlaceKind::kRepository,
                                       own_folders(source_.present_path()),
                                       "copy to a folder outside it"));
  VARVE_TRY_ASSIGN(const auto repository,
                   open_copy_place(place, setup, options_.copy.dry_run, "target-",
                                   {.wanted = !options_.no_wait,
                                    .shows_progress = !context_.quiet,
                                    .stopped = [this] { return stop_.stopped(); }}));
  if (repository == nullptr) return run(nullptr);
  auto report = run(copy_target(*repository).get());
  if (report && !options_.copy.dry_run && !options_.no_arrange && !changed_.empty()) {
    control::LocalControl control(*repository);
    arrange_owed(control, changed_, stop_, progress_, context_);
  }
  auto closed = repository->close();
  if (closed) return report;
  if (report) return std::move(closed).error();
  return std::move(report).error().with_context(closed.error().message());
}

Result<CopyReport> Copying::over_ssh(const SshPlace& place, const TargetSetup& setup) {
  const char* const given = std::getenv("VARVE_SSH");
  const std::string program =
      !options_.ssh.empty() ? options_.ssh : (given != nullptr ? given : "ssh");
  std::string command = options_.remote_program + " serve-copy";
  if (options_.no_arrange) command += " --no-arrange";
  // A fixed command of the remote machine ignores the option, and decides by its own options.
  if (options_.copy.prune) command += " --may-prune";
  command += " -- " + shell_quoted(place.path);
  std::signal(SIGPIPE, SIG_IGN);
  VARVE_TRY_ASSIGN(SshProgram ssh, SshProgram::start(program, place.host, command));
  auto connected = connect_target(ssh.input(), ssh.output(), setup, options_.copy.dry_run);
  if (!connected) return std::move(connected).error().with_context(options_.target);
  auto report = run(connected->target.get());
  connected->target.reset();
  auto ended = ssh.wait();
  if (report && !ended) return std::move(ended).error().with_context(options_.target);
  return report;
}

/// Returns the kind of target to request. Only an option of the user allows a plain target for
/// encrypted data. A key always requests an encrypted target.
TargetKind kind_of(const CopyArguments& options, const Source& source) {
  if (options.plain) return TargetKind::kPlain;
  if (options.encrypt) return TargetKind::kEncrypted;
  const bool is_secret =
      source.is_encrypted || source.key_is_of_target || !options.target_key.empty();
  return is_secret ? TargetKind::kExistingEncrypted : TargetKind::kAny;
}

Result<CopyReport> copy(const CopyArguments& options, const Context& context) {
  VARVE_TRY_ASSIGN(const auto place, parse_ssh_place(options.target));
  if (place && !options.target_key.empty()) {
    return usage_error(
        "the key of a repository on another machine is named there: by VARVE_PASSPHRASE_FILE, "
        "VARVE_KEY_FILE or VARVE_KEY_COMMAND of varve serve-copy");
  }
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("copying", shown);
  control::StopRequest stop;
  const SignalWatch signals(
      {.stop = [&] { stop.stop(); }, .report = [&] { progress.print_line(); }});
  VARVE_TRY_ASSIGN(const auto source, open_source(options, !place));
  if (source.key_is_of_target) {
    note(context, options.repository + " is plain; the key is used for " + options.target);
  }
  put_key_into_environment(options.target_key);  // The source is open.
  VARVE_TRY_ASSIGN(TargetSetup setup, target_setup(*source.repository));
  setup.kind = kind_of(options, source);
  Copying copying(options, context, *source.repository, progress, stop);
  return place ? copying.over_ssh(*place, setup) : copying.to_folder(setup);
}

std::string summary_of(const CopyReport& report, bool dry_run) {
  std::string text = fmt::format("{} {} versions; {} were there already",
                                 dry_run ? "would copy" : "copied", report.copied, report.present);
  if (!dry_run) text += fmt::format("; {} sent", size_text(report.sent_bytes, false));
  if (report.deleted > 0) text += fmt::format("; {} deleted", report.deleted);
  if (report.kept > 0) {
    text += fmt::format("; {} kept that the source does not have any more", report.kept);
  }
  if (report.passed_over > 0) {
    text += fmt::format("; {} passed over, as the target has later ones", report.passed_over);
  }
  return text + (report.problems.empty() ? "" : "; see the messages above");
}

int run_copy(CopyArguments options, const Context& context) {
  if (const auto given =
          take_repository({{"REPO", &options.repository}, {"DEST", &options.target, {}, true}},
                          control::Purpose::kLook);
      !given) {
    return fail(given.error());
  }
  if (const auto fit = check_key_options(options.target_key, "target-"); !fit)
    return fail(fit.error());
  if (options.plain && (options.encrypt || !options.target_key.empty())) {
    return fail(usage_error("--plain asks for a copy in the clear, which has no key"));
  }
  put_into_environment(options.store);
  const auto report = copy(options, context);
  if (!report) return fail(report.error());
  report_problems(report->problems);
  note(context, summary_of(*report, options.copy.dry_run));
  return report->problems.empty() ? kExitOk : kExitIncomplete;
}

}  // namespace

void add_copy_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<CopyArguments>();
  auto command =
      line.add_command("copy", "Copy all versions to a second repository, also on another machine");
  command.add_repository(options->repository);
  command.add_option(
      "DEST", options->target,
      "Folder of the second repository, created if needed; s3://BUCKET/PREFIX for one "
      "in an object store; ssh:HOST:PATH for one on another machine");
  command
      .add_option("--local", options->local,
                  "Folder on this machine of a DEST in an object store, unless it is known")
      .type_name("DIR");
  add_store_options(command, options->store);
  add_no_wait_flag(command, options->no_wait);
  command
      .add_option("--series", options->copy.series,
                  "Copy only this series; may be given several times")
      .type_name("NAME")
      .one_value_each();
  command.add_flag("--prune", options->copy.prune,
                   "Delete versions of DEST that the source does not have any more");
  command.add_flag("--verify", options->copy.check_all,
                   "Also read all earlier copies, and compare them with the source");
  command.add_flag("--incomplete", options->copy.incomplete,
                   "Copy versions with damaged files without these files");
  command.add_flag("-n,--dry-run", options->copy.dry_run,
                   "Change nothing; print what would be done");
  command
      .add_option("--ssh", options->ssh,
                  "Program that connects to HOST, with its options (default: $VARVE_SSH, or ssh)")
      .type_name("COMMAND");
  command
      .add_option("--remote-program", options->remote_program, "Name of varve on the other machine")
      .type_name("PATH")
      .show_default();
  add_no_arrange_flag(command, options->no_arrange);
  command.add_json_flag(options->json, "one for each step");
  command.add_progress_flag(options->progress);
  command.add_flag("--encrypt", options->encrypt,
                   "Create DEST encrypted if needed, and refuse one that is not");
  command.add_flag("--plain", options->plain,
                   "Copy into the clear, although REPO is encrypted; create DEST plain if needed");
  add_target_key_options(command, options->target_key);
  command.run([options, &context] { return run_copy(*options, context); });
}

}  // namespace varve::cli
