// SPDX-License-Identifier: Apache-2.0
#include "transfer/tree_restorer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/file_limit.h"
#include "transfer/file_metadata.h"
#include "transfer/source_listing.h"
#include "transfer/target_entry.h"
#include "transfer/transfer_error.h"

namespace varve {
namespace transfer {
namespace {

using base::UniqueFd;

// An interrupted restore with less data starts again from the beginning.
constexpr std::uint64_t kBytesWithoutLog = 16U << 20;
constexpr std::uint64_t kChangesWithoutLog = 1000;
constexpr std::uint32_t kWritersMax = 8;
// Limits for directories held open for files in flight. The pool queues fewer files than kHeldMax,
// so that the walk waits only if few files may be open.
constexpr std::size_t kHeldMin = 4;
constexpr std::size_t kHeldMax = 1024;

std::size_t writers(const RestoreOptions& options) {
  if (options.writers > 0) return std::min(options.writers, 64U);
  return std::clamp(std::thread::hardware_concurrency(), 2U, kWritersMax);
}

/// Removes a directory's default ACL, because all new entries would inherit the ACL.
void remove_default_acl(int fd) { (void)::fremovexattr(fd, "system.posix_acl_default"); }

}  // namespace

TreeRestorer::TreeRestorer(VersionReader& version, const RestoreOptions& options,
                           const OnProgress& progress)
    : version_(version),
      options_(options),
      progress_(progress),
      selection_(options.paths.size() > 1 ? options.paths : std::vector<std::string>()),
      folders_(options.own_folders),
      data_(options.sparse, [this](std::uint64_t bytes) { return advance(bytes); }),
      shared_(version, options.owners),
      held_max_(base::descriptors_for(kDescriptorShare, kHeldMin, kHeldMax)),
      segment_bytes_(logs_buffers() ? kRecoveryBufferBytes : options.segment_bytes),
      pool_(writers(options)),
      syncer_(1, "varve-sync") {
  if (options.scatter) {
    scatter_.emplace(
        version, data_, [this](std::uint64_t bytes) { return advance(bytes); },
        options.scatter_pieces);
  }
}

Result<TransferReport> TreeRestorer::run(const std::string& directory) {
  std::string name;
  for (const std::string& path : options_.paths) {
    VARVE_TRY(find_entry(version_, path, name));
  }
  const std::string start = options_.paths.size() == 1 ? options_.paths.front() : "";
  name.clear();
  VARVE_TRY_ASSIGN(const SealedEntry top, find_entry(version_, start, name));
  const bool is_tree = S_ISDIR(top.attributes.mode);
  frames_.push_back(Frame(top, nullptr));
  VARVE_TRY(open_target(directory, frames_.back()));
  VARVE_TRY(open_log(top));
  VARVE_TRY(check_target(directory, frames_.back()));
  if (start.empty() && options_.paths.empty()) done_.bytes_total = version_.info().logical_bytes;
  if (is_tree) announce_reads(frames_.back());
  frames_.back().keep_metadata = !is_tree || (options_.paths.size() > 1 && !frames_.back().fresh);
  if (is_tree) {
    if (!frames_.back().absent) VARVE_TRY(prepare_existing(frames_.back()));
  } else {
    frames_.back().lister = EntryLister(ListedEntry{1, name, top});
    // All ranks below a directory are larger than the directory's rank.
    frames_.back().entry.rank = 0;
  }
  auto walked = walk();
  while (walked && scatter_ && !(scatter_->is_empty() && late_links_.empty())) {
    walked = run_scatter();
  }
  scatter_.reset();
  late_links_.clear();
  // Keeps the incomplete file if the log has a point inside the file.
  if (large_ && large_offset_ > 0) large_->keep_partial();
  large_.reset();
  pool_.drain();
  VARVE_TRY(shared_.outcome());
  VARVE_TRY(walked);
  VARVE_TRY(finish_run(top));
  report_.entries = shared_.entries;
  report_.bytes = done_.bytes_done;
  report_.problems = shared_.problems.take();
  return std::move(report_);
}

/// Opens the target directory, and creates the directory if needed. The version has no metadata for
/// a new directory around a single file, so the umask or a default ACL decides the mode.
Result<void> TreeRestorer::open_target(const std::string& directory, Frame& root) {
  const bool has_metadata = S_ISDIR(root.entry.attributes.mode);
  VARVE_TRY(check_outside_repositories(directory, PlaceKind::kRepository, options_.own_folders,
                                       kOutsideAdvice));
  if (!options_.dry_run) {
    root.fresh = ::mkdir(directory.c_str(), has_metadata ? 0700 : 0777) == 0;
    if (!root.fresh && errno != EEXIST) return system_error("cannot create " + directory, errno);
  }
  root_ = UniqueFd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root_.valid()) {
    if (!options_.dry_run || errno != ENOENT) {
      return system_error("cannot open " + directory, errno);
    }
    root.absent = true;
    return {};
  }
  if (::flock(root_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Error(ErrorCode::kBusy, "another restore to " + directory + " is running");
  }
  UniqueFd fd(::openat(root_.get(), ".", kDirectoryFlags));
  if (!fd.valid()) return system_error("cannot open " + directory, errno);
  if (root.fresh && has_metadata) (void)::fremovexattr(fd.get(), "system.posix_acl_access");
  return directories_.push(std::move(fd));
}

/// Opens the log, under a name that is free in the version.
Result<void> TreeRestorer::open_log(const SealedEntry& top) {
  const VersionInfo& info = version_.info();
  std::string identity =
      fmt::format("series {} version {} sealed {}.{:09} bytes {} part",
                  static_cast<std::uint32_t>(info.series), static_cast<std::uint32_t>(info.number),
                  info.sealed_at.seconds, info.sealed_at.nanoseconds, info.logical_bytes);
  // The lengths distinguish lists of paths whose joined texts are equal.
  for (const std::string& path : options_.paths) {
    identity += fmt::format(" {}:", path.size());
    for (const char c : path) identity += c == '\n' ? '\0' : c;
  }
  std::string name = ".varve-restore.log";
  while (S_ISDIR(top.attributes.mode) && version_.lookup(top.rank, name)) name += "_";
  log_.emplace(root_.valid() && !options_.dry_run ? root_.get() : -1, name, identity);
  report_.resumed = log_->resumes();
  return {};
}

/// Announces that every file is read, if certain: existing files may be kept, a resumed restore
/// skips files, and a restore by pieces reads in a different order.
void TreeRestorer::announce_reads(const Frame& root) {
  if (!options_.paths.empty() || options_.dry_run || scatter_ || log_->resumes()) return;
  if (!root.fresh) {
    const auto names = list_names(root_.get());
    if (!names || !names->empty()) return;
  }
  version_.will_read_all();
}

/// Prepares an existing directory: removes the default ACL, entries missing from the version (with
/// `delete_others`), and left-over temporary files.
Result<void> TreeRestorer::prepare_existing(const Frame& frame) {
  const int fd = directories_.top();
  // A directory only on the way to a selected path keeps the ACL.
  if (!options_.dry_run && !frame.keep_metadata) remove_default_acl(fd);
  if (frame.fresh) return {};
  if (options_.delete_others && !frame.keep_metadata) VARVE_TRY(remove_others(frame));
  if (!log_->resumes() || options_.dry_run) return {};
  VARVE_TRY_ASSIGN(const auto names, list_names(fd));
  for (const std::string& name : names) {
    if (log_->is_temporary_name(name) &&
        (scatter_ || name != log_->temporary_name(log_->last().rank))) {
      (void)::unlinkat(fd, name.c_str(), 0);
    }
  }
  return {};
}

Result<void> TreeRestorer::walk() {
  std::optional<RestorePoint> due;
  while (!frames_.empty()) {
    if (shared_.failed()) return {};
    VARVE_TRY_ASSIGN(ListedEntry * next,
                     frames_.back().lister.next(version_, path_, shared_.problems));
    if (next == nullptr) {
      if (frames_.size() == 1) return {};
      VARVE_TRY(leave_directory());
      continue;
    }
    const ListedEntry item = std::move(*next);
    // Adds a point only if entries remain, because a complete restore needs no point.
    if (due) VARVE_TRY(add_point(*std::exchange(due, std::nullopt)));
    const std::size_t path_bytes = path_.size();
    if (!path_.empty()) path_ += '/';
    path_ += item.name;
    const std::size_t depth = frames_.size();
    VARVE_TRY(restore_entry(item.name, item.entry));
    if (frames_.size() == depth) {
      path_.resize(path_bytes);
      if (scatter_) {
        if (scatter_->is_full() || late_links_.size() >= scatter_->files_max()) {
          VARVE_TRY(run_scatter());
        }
        continue;  // A point of the log cannot list the complete files of a batch.
      }
      if (is_point_due(0)) due = RestorePoint{item.entry.rank + 1, 0};
    } else {
      frames_.back().path_bytes = path_bytes;
    }
  }
  return {};
}

/// Restores an entry. Reports a failure of the entry as a problem; returns an error only if the
/// restore cannot continue.
Result<void> TreeRestorer::restore_entry(const std::string& name, const SealedEntry& entry) {
  if (selection_.match(path_) == PathSelection::Match::kNone) return {};
  only_large_since_point_ = false;
  auto made = make_entry(name, entry);
  if (!made) {
    if (ends_transfer(made.error())) return std::move(made).error().with_context(path_);
    shared_.problems.add(path_, made.error().message());
    return {};
  }
  ++done_.files_done;
  if (!advance(0)) return Error(ErrorCode::kInterrupted, "interrupted");
  return {};
}

/// Restores the collected batch of files, then makes the deferred links to the batch's files.
Result<void> TreeRestorer::run_scatter() {
  VARVE_TRY(scatter_->run());
  pool_.drain();  // A link needs the result of the first name's file.
  if (shared_.failed()) return shared_.outcome();
  for (const LateLink& link : std::exchange(late_links_, {})) {
    auto made = make_late_link(link);
    if (made) continue;
    if (ends_transfer(made.error())) return std::move(made).error().with_context(link.path);
    shared_.problems.add(link.path, made.error().message());
  }
  return {};
}

Result<void> TreeRestorer::enter_directory(const std::string& name, const SealedEntry& entry) {
  // In a valid tree, ranks ascend from each directory to the entries. The check of the ranks thus
  // ends loops in a forged tree.
  if (entry.rank <= frames_.back().entry.rank || frames_.size() >= kDepthMax) {
    return Error(ErrorCode::kCorrupt, "left out: directories nested too deeply or in a circle");
  }
  Frame frame(entry, std::make_shared<const Place>(Place{frames_.back().place, name}));
  frame.absent = frames_.back().absent;
  Present present;
  if (!frame.absent && !frames_.back().fresh) {
    VARVE_TRY_ASSIGN(present, find_present(name));
  }
  const bool is_there = present && S_ISDIR(present->st_mode);
  if (present && !is_there) {
    tell(RestoreChange::kChanged, path_);
    if (!options_.dry_run && ::unlinkat(directories_.top(), name.c_str(), 0) != 0) {
      return system_error("unlink", errno);
    }
  } else if (!present) {
    tell(RestoreChange::kAdded, path_);
  }
  if (options_.dry_run && !is_there) {
    frame.absent = true;
  } else if (!is_there) {
    if (::mkdirat(directories_.top(), name.c_str(), 0700) != 0)
      return creation_error("mkdir", errno);
    frame.fresh = true;
  }
  frame.keep_metadata = is_there && selection_.match(path_) == PathSelection::Match::kOnTheWay;
  if (!frame.absent) {
    UniqueFd fd(open_beneath(directories_.top(), name.c_str(), kDirectoryFlags));
    if (!fd.valid()) return system_error("open", errno);
    if (is_there) VARVE_TRY(check_existing(frame, fd.get()));
    // Entries of the new directory must not inherit the ACL again.
    if (frames_.back().keep_metadata && !is_there) {
      remove_default_acl(fd.get());
      frame.inherits = true;
    }
    VARVE_TRY(directories_.push(std::move(fd)));
  }
  ++shared_.entries;
  if (is_there) VARVE_TRY(prepare_existing(frame));
  frames_.push_back(std::move(frame));
  return {};
}

/// Leaves a directory, and sets the directory's metadata after the last entry is complete. The mode
/// may forbid new files, and new files change the mtime.
Result<void> TreeRestorer::leave_directory() {
  Frame& frame = frames_.back();
  if (!frame.absent) {
    VARVE_TRY_ASSIGN(SharedFd fd, directories_.pop());
    if (!frame.keep_metadata) {
      frame.end->finish = [this, fd = std::move(fd), entry = frame.entry, path = path_,
                           fresh = frame.fresh && !frame.inherits] {
        if (!shared_.failed()) finish_directory(FileRef::opened(fd->get()), entry, path, fresh);
      };
    }
  }
  path_.resize(frame.path_bytes);
  frames_.pop_back();
  return {};
}

void TreeRestorer::finish_directory(const FileRef& file, const SealedEntry& entry,
                                    const std::string& path, bool fresh) {
  if (options_.dry_run) return;
  shared_.finish(file, entry, path, !fresh);
}

Result<void> TreeRestorer::finish_run(const SealedEntry& top) {
  syncing_.wait(true);
  VARVE_TRY(shared_.outcome());
  if (!options_.dry_run) VARVE_TRY(log_->remove());
  const Frame& root = frames_.front();
  if (root.absent || root.keep_metadata) return {};
  finish_directory(FileRef::opened(directories_.top()), top, ".", root.fresh);
  return {};
}

bool TreeRestorer::is_point_due(std::uint64_t next_bytes) const {
  // A log of buffers limits the bytes restored twice; a segment may be a little longer.
  return since_point_ + (logs_buffers() ? next_bytes : 0) >= segment_bytes_;
}

/// Adds a point to the log after all earlier data is synced. Between segments, another thread syncs
/// in the background, and a point is skipped while the previous point's sync is in flight.
Result<void> TreeRestorer::add_point(const RestorePoint& point) {
  if (options_.dry_run || syncing_) return {};
  since_point_ = 0;
  VARVE_TRY(log_->start());
  pool_.drain();
  if (shared_.failed()) return {};
  const bool is_in_large = large_ && point.rank == large_rank_ && point.offset > 0;
  if (large_ && point.rank == large_rank_) large_offset_ = point.offset;
  if (logs_buffers()) {
    VARVE_TRY(std::exchange(only_large_since_point_, is_in_large) ? large_->sync()
                                                                  : log_->sync_target());
    return log_->add(point);
  }
  syncing_ = true;
  syncer_.run([this, point] {
    auto added = log_->sync_target();
    if (added) added = log_->add(point);
    if (!added) shared_.fail(added.error());
    syncing_ = false;
    syncing_.notify_all();
  });
  return {};
}

/// Returns whether the restore is large enough for a log.
bool TreeRestorer::is_log_due() {
  return ++changes_ > kChangesWithoutLog || done_.bytes_done > kBytesWithoutLog;
}

bool TreeRestorer::advance(std::uint64_t bytes) {
  done_.bytes_done += bytes;
  since_point_ += bytes;
  return !progress_ || progress_(done_);
}

void TreeRestorer::tell(RestoreChange change, const std::string& path) const {
  if (options_.changed) options_.changed(change, path);
}

}  // namespace transfer

Result<TransferReport> restore_version(
    VersionReader& version, const std::string& directory, const RestoreOptions& options,
    const std::function<bool(const TransferProgress&)>& progress) {
  if (options.scatter && options.recovery_log == RecoveryLog::kBuffer) {
    return Error(ErrorCode::kInvalid,
                 "a log of buffers needs the order of the files, not that of the disk");
  }
  return transfer::TreeRestorer(version, options, progress).run(directory);
}

}  // namespace varve
