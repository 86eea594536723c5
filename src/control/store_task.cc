// SPDX-License-Identifier: Apache-2.0
// Storing a directory in the process that holds the repository.
#include "control/store_task.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/system_error.h"
#include "control/identity.h"
#include "control/local_control.h"
#include "control/named_version.h"
#include "varve/store.h"

namespace varve::control {
namespace {

constexpr std::size_t kProblemBytesMax = 256U << 10;  // A reply has at most 1 MiB.

/// Truncates a list of messages, and adds a message with the number of dropped messages.
void shorten(std::vector<std::string>& messages) {
  std::size_t bytes = 0;
  std::size_t kept = 0;
  while (kept < messages.size() && bytes + messages[kept].size() < kProblemBytesMax) {
    bytes += messages[kept++].size() + 64;
  }
  if (kept == messages.size()) return;
  const std::size_t more = messages.size() - kept;
  messages.resize(kept);
  messages.push_back(fmt::format("and {} more messages", more));
}

}  // namespace

Result<StoreTask> store_task(const std::string& version, const StoreRequest& request) {
  std::error_code error;
  const auto directory = std::filesystem::canonical(request.directory, error);
  if (error) return base::io_error(request.directory, error.value());
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) return base::io_error(request.directory, errno);
  StoreTask task;
  task.version = version;
  task.directory = directory.string();
  task.identity = {status.st_dev, status.st_ino};
  task.mount_namespace = own_mount_namespace();
  task.user = ::geteuid();
  task.without_entries = request.options.without_entries;
  task.excludes = request.options.excludes;
  task.only = request.options.only;
  task.without_caches = request.options.without_caches;
  task.one_file_system = request.options.one_file_system;
  task.seals = request.seals;
  task.read_all = request.read_all;
  task.guard = request.guard;
  return task;
}

Result<void> check_same_view(const StoreTask& task) {
  if (task.user != ::geteuid() && ::geteuid() != 0) {
    return Error(ErrorCode::kLocked,
                 fmt::format("the daemon runs as user {} and could not read all files of {}; copy "
                             "them into the mount instead",
                             ::geteuid(), task.directory));
  }
  struct stat status {};
  const bool is_same = ::stat(task.directory.c_str(), &status) == 0 &&
                       DirectoryIdentity{status.st_dev, status.st_ino} == task.identity &&
                       own_mount_namespace() == task.mount_namespace;
  if (is_same) return {};
  return Error(
      ErrorCode::kLocked,
      "the daemon sees other files at " + task.directory +
          ", because it runs in another mount namespace; copy them into the mount instead");
}

Result<void> check_stream(const StreamSource& stream) {
  struct stat status {};
  const int flags = stream.input ? ::fcntl(stream.input->get(), F_GETFL) : -1;
  const bool is_open = flags >= 0 && ::fstat(stream.input->get(), &status) == 0 &&
                       (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY;
  if (is_open && (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode))) return {};
  return Error(ErrorCode::kInvalid,
               "the daemon stores a stream from a file or a pipe only; pass it on with `cat`");
}

/// Notes that a store into a series is under way.
class LocalControl::Storing {
 public:
  Storing(LocalControl& control, std::string series)
      : control_(control), series_(std::move(series)) {
    const std::lock_guard lock(control_.storing_mutex_);
    is_alone_ = control_.storing_.insert(series_).second;
  }
  Storing(const Storing&) = delete;
  Storing& operator=(const Storing&) = delete;
  ~Storing() {
    if (!is_alone_) return;
    const std::lock_guard lock(control_.storing_mutex_);
    control_.storing_.erase(series_);
  }
  [[nodiscard]] bool is_alone() const { return is_alone_; }

 private:
  LocalControl& control_;
  const std::string series_;
  bool is_alone_ = false;
};

// The store of an interrupted command takes a moment to end. Two concurrent stores would change the
// same files.
Result<StoreTaskReply> LocalControl::store(
    const StoreTask& task, const StopRequest& stop,
    const std::function<void(const TransferProgress&)>& progress) {
  VARVE_TRY(check_changes());
  VARVE_TRY_ASSIGN(const VersionName name, split_version_name(task.version));
  VARVE_TRY(task.stream ? check_stream(*task.stream) : check_same_view(task));
  const Storing storing(*this, name.series);
  if (!storing.is_alone()) {
    return Error(ErrorCode::kBusy, "another `varve store` into the series " + name.series +
                                       " is under way; wait for it");
  }
  return task.stream ? store_stream_alone(task, stop, progress) : store_alone(task, stop, progress);
}

Result<VersionInfo> LocalControl::open_to_store(const VersionName& name, SeriesId id,
                                                VersionNumber source, const NewFile& root) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, find_series(repository_, name.series));
  if (series.id != id) return Error(ErrorCode::kBusy, name.series + " was renamed meanwhile");
  return source == VersionNumber{} ? open_version(series, name.version, root)
                                   : clone_version(series, source, name.version);
}

Result<StoreTaskReply> LocalControl::end_store(const StoreTask& task, StoredVersion stored,
                                               const StopRequest& stop, StoreTaskReply reply) {
  if (task.time) VARVE_TRY(claim_time(repository_, stored.info, *task.time));
  if (task.seals) {
    SealRequest seal;
    seal.version = task.version;
    VARVE_TRY_ASSIGN(const SealOutcome sealed, seal_version(stored.info, seal, stop));
    if (stored.keep_states) stored.keep_states(sealed.info);
    reply.version = sealed.info;
  } else {
    VARVE_TRY_ASSIGN(const auto writer, repository_.writer(stored.info.series));
    VARVE_TRY(writer->sync());
    reply.version = writer->info();
  }
  reply.report = std::move(stored.report);
  shorten(reply.report.problems);
  shorten(reply.left_out);
  shorten(reply.other_devices);
  return reply;
}

Result<StoreTaskReply> LocalControl::store_stream_alone(
    const StoreTask& task, const StopRequest& stop,
    const std::function<void(const TransferProgress&)>& progress) {
  VARVE_TRY_ASSIGN(const VersionName name, split_version_name(task.version));
  StreamRequest request;
  request.series = name.series;
  request.version = name.version;
  request.file = task.stream->file;
  request.seals = task.seals;
  request.refuses_empty = task.guard;
  request.open = [&](SeriesId id, VersionNumber source, const NewFile& root) {
    return open_to_store(name, id, source, root);
  };
  request.drop = [&](SeriesId id, VersionNumber number) { return discard_version(id, number); };
  request.confirm = [&]() -> Result<void> {
    if (!task.stream->confirm || task.stream->confirm()) return {};
    return Error(ErrorCode::kInterrupted, "the command ended before its stream was stored");
  };
  VARVE_TRY_ASSIGN(StoredVersion stored,
                   repository_.store_stream(request, task.stream->input->get(),
                                            [&](const TransferProgress& done) {
                                              if (progress) progress(done);
                                              return !stop.stopped();
                                            }));
  return end_store(task, std::move(stored), stop, {});
}

Result<StoreTaskReply> LocalControl::store_alone(
    const StoreTask& task, const StopRequest& stop,
    const std::function<void(const TransferProgress&)>& progress) {
  VARVE_TRY_ASSIGN(const VersionName name, split_version_name(task.version));
  StoreTaskReply reply;
  StoreRequest request;
  request.series = name.series;
  request.version = name.version;
  request.directory = task.directory;
  request.options.without_entries = task.without_entries;
  request.options.excludes = task.excludes;
  request.options.only = task.only;
  request.options.without_caches = task.without_caches;
  request.options.one_file_system = task.one_file_system;
  request.options.left_out = [&](const std::string& path) { reply.left_out.push_back(path); };
  request.options.other_device = [&](const std::string& path) {
    reply.other_devices.push_back(path);
  };
  request.seals = task.seals;
  request.read_all = task.read_all;
  request.guard = task.guard;
  request.open = [&](SeriesId id, VersionNumber source, const NewFile& root) {
    return open_to_store(name, id, source, root);
  };
  request.drop = [&](SeriesId id, VersionNumber number) { return discard_version(id, number); };
  VARVE_TRY_ASSIGN(StoredVersion stored,
                   repository_.store_version(request, [&](const TransferProgress& done) {
                     if (progress) progress(done);
                     return !stop.stopped();
                   }));
  return end_store(task, std::move(stored), stop, std::move(reply));
}

}  // namespace varve::control
