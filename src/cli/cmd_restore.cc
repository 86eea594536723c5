// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_limit.h"
#include "cli/archive_file.h"
#include "cli/command.h"
#include "cli/named_places.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/repository_access.h"
#include "cli/signal_watch.h"
#include "cli/version_path.h"
#include "control/key_source.h"
#include "varve/browse.h"
#include "varve/choices.h"
#include "varve/restore.h"

namespace varve::cli {
namespace {

struct RestoreArguments {
  std::vector<std::string> words;
  std::string tar;
  std::string engine;
  std::string recovery_log;
  RestoreOptions restore;
  bool progress = false;
  bool force = false;
  bool json = false;
  bool no_owner = false;
};

/// The parts of the command line.
struct Request {
  std::string repository;
  VersionPath version;  ///< The path is unused; see `paths`.
  std::vector<std::string> paths;
  std::string directory;
};

Result<Request> read_words(const RestoreArguments& options) {
  Request request;
  std::vector<std::string> words = options.words;
  if (options.tar.empty()) {
    if (words.size() < 2) {
      return usage_error(
          "a version or the directory is missing; the arguments are REPO SERIES/VERSION DIR");
    }
    request.directory = std::move(words.back());
    words.pop_back();
    const bool is_set = std::getenv("VARVE_REPO") != nullptr;
    auto swapped = is_set ? std::nullopt : swapped_words(words.front(), {request.directory});
    if (swapped) {
      return std::move(*swapped).with_more("; the directory comes last");
    }
  }
  VARVE_TRY_ASSIGN(const NamedPlaces named,
                   find_places(words, {.least = 1, .order = "REPO SERIES/VERSION DIR"}));
  request.repository = named.repository;
  request.version = named.places.front();
  for (const VersionPath& place : named.places) {
    if (place.version.empty()) {
      return usage_error("\"" + place.series +
                         "\" names no version; write SERIES/VERSION, such as " + place.series +
                         "/latest. The directory to restore to comes last");
    }
    if (place.series != request.version.series || place.version != request.version.version) {
      return usage_error(
          "all paths must be in the same version; the directory "
          "to restore to comes last");
    }
    if (!place.path.empty()) request.paths.push_back(place.path);
  }
  // A place for the whole version includes all parts.
  if (request.paths.size() < named.places.size()) request.paths.clear();
  return request;
}

void print_change_json(RestoreChange change, const std::string& path) {
  const char* word = "changed";
  if (change == RestoreChange::kAdded) word = "added";
  if (change == RestoreChange::kMetadata) word = "metadata";
  if (change == RestoreChange::kRemoved) word = "removed";
  Json object{{"change", word}};
  put_name(object, "path", path);
  print_json("change", std::move(object));
}

void print_kept_json(const std::string& path, const std::string& message) {
  Json object{{"message", message}};
  put_name(object, "path", path);
  print_json("kept", std::move(object));
}

/// Returns whether the restore certainly reads all files, because the restore begins with an empty
/// directory.
bool reads_all(const Request& request, const RestoreArguments& options) {
  if (!options.tar.empty() || !request.paths.empty() || options.restore.dry_run ||
      options.restore.scatter) {
    return false;
  }
  std::error_code error;
  const auto found = std::filesystem::symlink_status(request.directory, error);
  if (found.type() == std::filesystem::file_type::not_found) return true;
  return std::filesystem::is_empty(request.directory, error) && !error;
}

/// Requests the version's first files, if the repository has the version.
void announce(Repository& repository, const VersionPath& version) {
  repository.will_read_once();
  const auto info = find_version(repository, version);
  if (!info) return;
  const auto reader = repository.reader(info->series, info->number);
  if (!reader) return;
  (*reader)->will_read_all();
}

// Returns whether a version has an entry at a path. Unreadable folders count as having one.
bool has_entry(VersionReader& reader, const std::filesystem::path& path) {
  Rank at = 0;
  for (const auto& name : path) {
    const auto found = reader.lookup(at, name.string());
    if (!found) return found.error().code() != ErrorCode::kNotFound;
    at = found->rank;
  }
  return true;
}

// Refuses to remove or to overwrite the key that opens the repository: nothing else does. Compares
// folders by identity, so links and bind mounts hide nothing.
Result<void> keep_keys(VersionReader& reader, const Request& request,
                       const RestoreArguments& options) {
  namespace fs = std::filesystem;
  const auto place = control::key_place_of_environment();
  for (const auto& named : {place.key_file, place.passphrase_file}) {
    std::error_code error;
    const auto key = fs::canonical(named, error);
    if (error || !fs::is_regular_file(key, error)) continue;
    const Error refused(ErrorCode::kInvalid,
                        fmt::format("the restore would replace or remove {}, the key of the "
                                    "repository; move the key elsewhere, or choose another place",
                                    printable(key.string())));
    if (!options.tar.empty()) {
      if (fs::equivalent(options.tar, key, error)) return refused;
      continue;
    }
    for (auto folder = key.parent_path();; folder = folder.parent_path()) {
      const bool is_target = fs::equivalent(folder, request.directory, error);
      if (is_target &&
          (options.restore.delete_others || has_entry(reader, key.lexically_relative(folder)))) {
        return refused;
      }
      if (folder == folder.parent_path()) break;
    }
  }
  return {};
}

// Sets `begun` once the repository is open.
Result<TransferReport> restore(const Request& request, const RestoreArguments& options,
                               const Context& context, bool& begun) {
  // With --scatter, more open files mean fewer passes over the disk.
  base::raise_file_limit();
  const bool shown = options.progress || (Progress::terminal() && !context.quiet);
  Progress progress("restoring", shown);
  std::atomic<bool> stop = false;
  const SignalWatch signals(
      {.stop = [&] { stop = true; }, .report = [&] { progress.print_line(); }});
  const auto on_progress = [&](const TransferProgress& done) {
    progress.update(done.bytes_done, done.bytes_total, done.files_done);
    return !stop;
  };
  auto open_options = options_to_read(request.repository);
  if (!options.engine.empty()) open_options.engine = options.engine;
  if (reads_all(request, options)) {
    open_options.announce = [&request](Repository& present) { announce(present, request.version); };
  }
  VARVE_TRY_ASSIGN(const auto repository, Repository::open(request.repository, open_options));
  begun = true;
  repository->will_read_once();
  const auto own = own_folders(repository->present_path());
  VARVE_TRY_ASSIGN(const VersionInfo info, find_version(*repository, request.version));
  VARVE_TRY_ASSIGN(const auto reader, repository->reader(info.series, info.number));
  VARVE_TRY(keep_keys(*reader, request, options));
  if (!options.tar.empty()) {
    VARVE_TRY_ASSIGN(auto archive, ArchiveFile::open(options.tar, options.force, own));
    VARVE_TRY_ASSIGN(TransferReport report,
                     write_tar(*reader, archive.fd(), request.paths, on_progress));
    VARVE_TRY(archive.finish());
    return report;
  }
  RestoreOptions restore_options = options.restore;
  restore_options.paths = request.paths;
  restore_options.own_folders = own;
  restore_options.owners = !options.no_owner;
  if (options.json) restore_options.kept = print_kept_json;
  if (options.recovery_log == "buffer") restore_options.recovery_log = RecoveryLog::kBuffer;
  if (options.restore.dry_run || context.verbosity > 0) {
    restore_options.changed = [&options](RestoreChange change, const std::string& path) {
      if (options.json) return print_change_json(change, path);
      print(fmt::format("{} {}\n", static_cast<char>(change), name_text(path)));
    };
  }
  return restore_version(*reader, request.directory, restore_options, on_progress);
}

std::vector<std::string> engine_names() {
  std::vector<std::string> names;
  for (const auto& choice : engine_choices()) names.push_back(choice.name);
  return names;
}

std::string summary(const TransferReport& report, const RestoreArguments& options,
                    const std::string& target) {
  std::string text = fmt::format("{} {} entries with {} to {}",
                                 options.restore.dry_run ? "would restore" : "restored",
                                 report.entries, size_text(report.bytes, false), target);
  if (report.unchanged > 0) text += fmt::format(", {} files unchanged", report.unchanged);
  if (report.removed > 0) text += fmt::format(", {} entries removed", report.removed);
  if (report.resumed) text += ", continued after an interruption";
  if (!report.problems.empty()) text += ", but not all; see the messages above";
  return text;
}

int run_restore(const RestoreArguments& options, const Context& context) {
  if (options.json && options.tar == "-") {
    return fail(usage_error("an archive and JSON lines cannot both go to standard output"));
  }
  const auto request = read_words(options);
  if (!request) return fail(request.error());
  bool begun = false;
  const auto report = restore(*request, options, context, begun);
  if (!report) {
    if (begun && options.tar.empty() &&
        (report.error().code() == ErrorCode::kInterrupted ||
         report.error().code() == ErrorCode::kNoSpace)) {
      note(context, "the same command continues from here");
    }
    return fail(report.error());
  }
  report_problems(report->problems);
  const std::string& target = options.tar.empty() ? request->directory : options.tar;
  if (options.json) {
    Json object{{"entries", report->entries},        {"data_bytes", report->bytes},
                {"unchanged", report->unchanged},    {"removed", report->removed},
                {"resumed", report->resumed},        {"problems", report->problems.size()},
                {"dry_run", options.restore.dry_run}};
    put_name(object, "target", target);
    print_json("restored", std::move(object));
  } else {
    note(context, summary(*report, options, target));
  }
  return report->problems.empty() ? kExitOk : kExitIncomplete;
}

}  // namespace

void add_restore_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<RestoreArguments>();
  auto command = line.add_command("restore", "Copy a version, or parts of it, to a directory");
  command.add_places(
      options->words,
      "SERIES/VERSION[/path], one or more of one version; last, the directory, new or existing");
  auto remove = command.add_flag("--delete", options->restore.delete_others,
                                 "Remove entries of the directory that the version does not have");
  command.add_flag("-n,--dry-run", options->restore.dry_run,
                   "Change nothing; print the planned changes");
  command.add_flag("--no-owner", options->no_owner,
                   "Leave owners and groups to the user of the command, without setuid and setgid "
                   "bits");
  command.add_flag("--checksum", options->restore.compare_content,
                   "Compare the content of files even if size and time are the same");
  command
      .add_option("--writers", options->restore.writers,
                  "Threads that create files (default: depends on the number of cores)")
      .in(NumberRange<int>{1, 64})
      .type_name("N");
  command
      .add_option("--segment", options->restore.segment_bytes,
                  "Data between two syncs that record the progress (default: 1G)")
      .as_size()
      .in(NumberRange<std::uint64_t>{std::uint64_t{1} << 16, std::uint64_t{1} << 40})
      .type_name("SIZE");
  auto recovery_log = command
                          .add_option("--recovery-log", options->recovery_log,
                                      "When to sync and record the progress: after each segment "
                                      "(default), or after each buffer of 4M")
                          .one_of({"segment", "buffer"})
                          .type_name("segment|buffer");
  auto scatter = command
                     .add_flag("--scatter", options->restore.scatter,
                               "Read in the order of the disk, for spinning disks")
                     .excludes(recovery_log);
  command.add_option("--engine", options->engine, "Restore engine; see mount.varve(8)")
      .one_of(engine_names())
      .type_name("NAME");
  auto tar = command
                 .add_option("--to-tar", options->tar,
                             "Write a tar archive to a new file; - is standard output")
                 .type_name("FILE")
                 .excludes(remove)
                 .excludes(scatter);
  command.add_flag("--force", options->force, "Replace an existing archive").needs(tar);
  command.add_json_flag(options->json, "the sums; with -n or -v, the changes first");
  command.add_progress_flag(options->progress);
  command.run([options, &context] { return run_restore(*options, context); });
}

}  // namespace varve::cli
