// SPDX-License-Identifier: Apache-2.0
// Restores single entries: compares, keeps or replaces the entries of the target.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "transfer/file_metadata.h"
#include "transfer/target_entry.h"
#include "transfer/transfer_error.h"
#include "transfer/tree_restorer.h"

namespace varve::transfer {
namespace {

using base::UniqueFd;

// Slack for the clock of a file's ctime. The clock of the log is finer.
constexpr std::int64_t kClockSlackSeconds = 2;

bool same_time(const struct stat& status, const Timestamp& time) {
  return status.st_mtim.tv_sec == time.seconds &&
         status.st_mtim.tv_nsec == static_cast<long>(time.nanoseconds);
}

}  // namespace

Result<void> TreeRestorer::make_entry(const std::string& name, const SealedEntry& entry) {
  const mode_t type = entry.attributes.mode & S_IFMT;
  if (type == S_IFDIR) return enter_directory(name, entry);
  if (type != S_IFREG && type != S_IFLNK && type != S_IFBLK && type != S_IFCHR && type != S_IFIFO &&
      type != S_IFSOCK) {
    return Error(ErrorCode::kCorrupt, "unknown file type");
  }
  if (type == S_IFREG) VARVE_TRY(note_repository(name));
  const bool linked = entry.link_group != 0;
  if (linked) {
    if (defer_link(name, entry)) return {};
    VARVE_TRY_ASSIGN(const bool done, link_to_first(name, entry));
    if (done) return {};
  }
  Present present;
  if (!frames_.back().fresh && !frames_.back().absent) {
    VARVE_TRY_ASSIGN(present, find_present(name));
  }
  large_.reset();
  if (type == S_IFREG) {
    VARVE_TRY(make_file(name, entry, present));
  } else if (type == S_IFLNK) {
    VARVE_TRY(make_symlink(name, entry, present));
  } else {
    VARVE_TRY(make_special(name, entry, present));
  }
  if (linked && entry.attributes.nlink > 1) {
    first_names_[entry.link_group] =
        FirstName{frames_.back().place, name, entry.attributes.nlink - 1ULL, std::move(last_task_)};
  }
  last_task_.reset();
  return {};
}

/// Returns whether hard links of a target file may be kept. All kept links must belong to the same
/// file of the version, because a change to one name changes all.
bool TreeRestorer::may_share_inode(const SealedEntry& entry, const struct stat& status) {
  if (status.st_nlink <= 1) return true;
  if (entry.link_group == 0) return false;
  const auto [kept, first] = kept_inodes_.try_emplace(status.st_ino, entry.link_group);
  return first || kept->second == entry.link_group;
}

Result<bool> TreeRestorer::is_content_same(FileReader& source, const std::string& name,
                                           const SealedEntry& entry, const struct stat& status) {
  const Attributes& wanted = entry.attributes;
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != wanted.size ||
      !may_share_inode(entry, status)) {
    return false;
  }
  const bool same = same_time(status, wanted.mtime);
  // A file made by an interrupted restore after the second to last point is compared again: after a
  // power failure, data may be missing.
  const bool suspect = log_->resumes() && entry.rank >= log_->verified().rank &&
                       status.st_ctim.tv_sec >= log_->started_at() - kClockSlackSeconds;
  if (!options_.compare_content && !(same && suspect)) return same;
  const UniqueFd fd(open_beneath(directories_.top(), name.c_str(),
                                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat opened {};
  if (!fd.valid() || ::fstat(fd.get(), &opened) != 0 || opened.st_ino != status.st_ino) {
    return false;
  }
  // The second to last point may be inside the file.
  const RestorePoint& before = log_->verified();
  const bool is_partly = !options_.compare_content && before.rank == entry.rank;
  return same_content(source, fd.get(), is_partly ? std::min(before.offset, wanted.size) : 0,
                      wanted.size, [this](std::uint64_t bytes) { return advance(bytes); });
}

bool TreeRestorer::keep_same(const std::string& name, const SealedEntry& entry,
                             const struct stat& status) {
  const Attributes& wanted = entry.attributes;
  const FileRef file = FileRef::named(directories_.top(), name);
  const auto xattrs = version_.xattrs(entry.rank);
  const auto has = read_xattrs(file);
  const bool is_link = S_ISLNK(wanted.mode);
  const bool same_owner =
      !options_.owners || (status.st_uid == wanted.uid && status.st_gid == wanted.gid);
  const mode_t bits = options_.owners ? 07777 : 01777;
  const bool same = same_owner && (is_link || ((status.st_mode ^ wanted.mode) & bits) == 0) &&
                    same_time(status, wanted.mtime) && xattrs && has && *xattrs == *has;
  if (!same) {
    // The file may have names outside the target.
    if (status.st_nlink > 1) return false;
    tell(RestoreChange::kMetadata, path_);
    if (!options_.dry_run) {
      shared_.finish(file, entry, path_, true);
    }
  }
  ++shared_.entries;
  if (S_ISREG(wanted.mode)) ++report_.unchanged;
  return true;
}

Result<void> TreeRestorer::note_repository(const std::string& name) {
  if (!is_repository_name(name) || !frames_.back().fresh || frames_.back().absent) return {};
  VARVE_TRY_ASSIGN(const auto folder, FolderIdentity::of(directories_.top()));
  syncing_.wait(true);  // The syncing thread adds a point to the log.
  return log_->note_repository(frames_.back().entry.rank, folder.inode);
}

Result<void> TreeRestorer::make_file(const std::string& name, const SealedEntry& entry,
                                     const Present& present) {
  VARVE_TRY_ASSIGN(const auto source, version_.open(entry.rank));
  if (present) {
    VARVE_TRY_ASSIGN(const bool same, is_content_same(*source, name, entry, *present));
    if (same && keep_same(name, entry, *present)) {
      if (!options_.dry_run && log_->resumes() && entry.rank == log_->last().rank) {
        (void)::unlinkat(directories_.top(), log_->temporary_name(entry.rank).c_str(), 0);
      }
      done_.bytes_total -= std::min(done_.bytes_total, entry.attributes.data_bytes);
      return {};
    }
  }
  VARVE_TRY(clear_way(name, present));
  tell(present ? RestoreChange::kChanged : RestoreChange::kAdded, path_);
  if (options_.dry_run) {
    ++shared_.entries;
    return {};
  }
  return write_file(*source, name, entry, present && !S_ISDIR(present->st_mode));
}

Result<void> TreeRestorer::write_file(FileReader& source, const std::string& name,
                                      const SealedEntry& entry, bool replaces) {
  // The interrupted restore may have had different segments: the existing part of the file counts.
  const bool has_part =
      !scatter_ && log_->resumes() && log_->last().rank == entry.rank && log_->last().offset > 0;
  const bool is_large =
      has_part || entry.attributes.size > segment_bytes_ ||
      (logs_buffers() && since_point_ + entry.attributes.data_bytes > segment_bytes_);
  if (scatter_ || is_large || replaces || is_log_due()) VARVE_TRY(log_->start());
  FilePlan plan;
  plan.directory = hold_directory();
  plan.end = frames_.back().end;
  plan.name = name;
  if (is_large || replaces) plan.temporary = log_->temporary_name(entry.rank);
  plan.path = path_;
  plan.entry = entry;
  plan.replaces = replaces;
  plan.inherits = frames_.back().keep_metadata;
  if (!plan.temporary.empty()) {
    VARVE_TRY_ASSIGN(plan.resume_offset, resume_offset(source, entry, plan.temporary));
  }
  const std::uint64_t begin = plan.resume_offset;
  const auto task = std::make_shared<FileTask>(std::move(plan), shared_, pool_);
  // The scattered pass writes no zeros for holes, so a file in need of zeros is restored in the
  // ordinary way.
  if (scatter_ && (options_.sparse || entry.attributes.data_bytes == entry.attributes.size)) {
    if (entry.link_group != 0) last_task_ = task;
    return scatter_->add(task, source, entry.rank);
  }
  if (is_large) {
    large_ = task;
    large_rank_ = entry.rank;
    large_offset_ = begin;
  }
  const auto on_piece = [this, rank = entry.rank](std::uint64_t offset, std::uint64_t next_bytes) {
    return is_point_due(next_bytes) ? add_point({rank, offset}) : Result<void>();
  };
  LargeFileSink resumable(*task, begin, on_piece);
  FileSink& sink = is_large ? static_cast<FileSink&>(resumable) : *task;
  VARVE_TRY_ASSIGN(const UnreadableData lost, data_.copy(source, sink, begin));
  task->finish(lost);
  if (entry.link_group != 0) last_task_ = task;
  large_.reset();
  return {};
}

SharedFd TreeRestorer::hold_directory() {
  Frame& frame = frames_.back();
  if (auto held = frame.held.lock()) return held;
  // A scattered batch holds more directories, and waiting does not release the batch's directories.
  const std::size_t held_max = held_max_ + (scatter_ ? scatter_->files_max() : 0);
  if (shared_.held_directories >= held_max) pool_.drain();
  ++shared_.held_directories;
  SharedFd fd = directories_.share_top();
  const base::UniqueFd* const bare = fd.get();
  SharedFd held(bare, [this, fd = std::move(fd)](const base::UniqueFd*) mutable {
    fd.reset();
    --shared_.held_directories;
  });
  frame.held = held;
  return held;
}

/// Returns the number of bytes of an interrupted file to keep, after comparing the last segment
/// with the version. If nothing can be kept, removes the temporary file.
Result<std::uint64_t> TreeRestorer::resume_offset(FileReader& source, const SealedEntry& entry,
                                                  const std::string& temporary) {
  const RestorePoint& last = log_->last();
  if (!scatter_ && log_->resumes() && last.rank == entry.rank && last.offset > 0 &&
      last.offset <= entry.attributes.size) {
    const UniqueFd fd(open_beneath(directories_.top(), temporary.c_str(),
                                   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (fd.valid() && ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_nlink == 1 && static_cast<std::uint64_t>(status.st_size) >= last.offset) {
      const RestorePoint& before = log_->verified();
      const std::uint64_t begin = before.rank == entry.rank ? before.offset : 0;
      VARVE_TRY_ASSIGN(const bool same,
                       same_content(source, fd.get(), std::min(begin, last.offset), last.offset,
                                    [this](std::uint64_t bytes) { return advance(bytes); }));
      if (same) return last.offset;
    }
  }
  if (log_->resumes()) (void)::unlinkat(directories_.top(), temporary.c_str(), 0);
  return 0;
}

Result<void> TreeRestorer::place(const std::string& name, const SealedEntry& entry,
                                 const Present& present,
                                 const std::function<int(const char*)>& make) {
  VARVE_TRY(clear_way(name, present));
  tell(present ? RestoreChange::kChanged : RestoreChange::kAdded, path_);
  if (options_.dry_run) {
    ++shared_.entries;
    return {};
  }
  const bool replaces = present && !S_ISDIR(present->st_mode);
  std::string made = name;
  if (replaces) {
    VARVE_TRY(log_->start());
    made = log_->temporary_name(entry.rank);
    if (log_->resumes()) (void)::unlinkat(directories_.top(), made.c_str(), 0);
  }
  if (make(made.c_str()) != 0) return creation_error("create", errno);
  shared_.finish(FileRef::named(directories_.top(), made), entry, path_,
                 frames_.back().keep_metadata);
  if (replaces && ::renameat(directories_.top(), made.c_str(), directories_.top(), name.c_str())) {
    const int reason = errno;
    (void)::unlinkat(directories_.top(), made.c_str(), 0);
    return system_error("rename", reason);
  }
  ++shared_.entries;
  return {};
}

Result<void> TreeRestorer::make_symlink(const std::string& name, const SealedEntry& entry,
                                        const Present& present) {
  VARVE_TRY_ASSIGN(const std::string target, version_.read_link(entry.rank));
  if (target.empty() || target.find('\0') != std::string::npos) {
    return Error(ErrorCode::kCorrupt, "left out: a symlink without a target");
  }
  if (present && S_ISLNK(present->st_mode) && may_share_inode(entry, *present)) {
    std::string there(kSymlinkBytesMax + 1, '\0');
    const ssize_t n = ::readlinkat(directories_.top(), name.c_str(), there.data(), there.size());
    if (n >= 0 && there.substr(0, static_cast<std::size_t>(n)) == target &&
        keep_same(name, entry, *present)) {
      return {};
    }
  }
  return place(name, entry, present, [&](const char* made) {
    return ::symlinkat(target.c_str(), directories_.top(), made);
  });
}

Result<void> TreeRestorer::make_special(const std::string& name, const SealedEntry& entry,
                                        const Present& present) {
  const mode_t type = entry.attributes.mode & S_IFMT;
  const auto device = static_cast<dev_t>(entry.attributes.rdev);
  const bool is_device = type == S_IFBLK || type == S_IFCHR;
  if (present && (present->st_mode & S_IFMT) == type &&
      (!is_device || present->st_rdev == device) && may_share_inode(entry, *present) &&
      keep_same(name, entry, *present)) {
    return {};
  }
  return place(name, entry, present, [&](const char* made) {
    return ::mknodat(directories_.top(), made, type | 0600, device);
  });
}

bool TreeRestorer::defer_link(const std::string& name, const SealedEntry& entry) {
  if (!scatter_) return false;
  const auto found = first_names_.find(entry.link_group);
  if (found == first_names_.end()) return false;
  const FirstName& first = found->second;
  if (!first.task || !first.task->is_pending()) return false;
  const Frame& frame = frames_.back();
  late_links_.push_back({frame.entry, frame.place, frame.end, directories_.share_top(), frame.fresh,
                         frame.keep_metadata, frame.is_elsewhere, name, path_, entry});
  return true;
}

/// Makes a link after the walk has left the link's directory, as if the walk were still there.
Result<void> TreeRestorer::make_late_link(const LateLink& link) {
  const base::UniqueFd* fd = link.directory_fd.get();
  UniqueFd copy(::fcntl(fd->get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return system_error("dup", errno);
  Frame frame(link.directory, link.place);
  frame.end = link.end;
  frame.fresh = link.fresh;
  frame.keep_metadata = link.keep_metadata;
  frame.is_elsewhere = link.is_elsewhere;
  std::vector<Frame> frames;
  frames.push_back(std::move(frame));
  DirectoryStack directories;
  VARVE_TRY(directories.push(std::move(copy)));
  std::string path = link.path;
  frames_.swap(frames);
  std::swap(directories_, directories);
  path_.swap(path);
  auto made = make_entry(link.name, link.entry);
  frames_.swap(frames);
  std::swap(directories_, directories);
  path_.swap(path);
  return made;
}

/// Links `name` to the file's first restored name. Returns false if there is none yet.
Result<bool> TreeRestorer::link_to_first(const std::string& name, const SealedEntry& entry) {
  const auto found = first_names_.find(entry.link_group);
  if (found == first_names_.end()) return false;
  FirstName& first = found->second;
  if (first.task && !first.task->wait()) {
    first_names_.erase(found);
    return false;
  }
  // Reports damage for each of the file's names.
  if (const auto damage = first.task ? first.task->damage() : ""; !damage.empty()) {
    shared_.problems.add(path_, damage);
  }
  if (frames_.back().absent) {
    tell(RestoreChange::kAdded, path_);
    ++shared_.entries;
    return true;
  }
  auto directory = open_place(first.directory);
  Present present;
  if (!frames_.back().fresh) {
    VARVE_TRY_ASSIGN(present, find_present(name));
  }
  struct stat status {};
  const bool is_linked =
      present && directory &&
      ::fstatat(directory->get(), first.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_ino == present->st_ino && status.st_dev == present->st_dev;
  if (!is_linked) {
    VARVE_TRY(clear_way(name, present));
    tell(present ? RestoreChange::kChanged : RestoreChange::kAdded, path_);
    if (!options_.dry_run) {
      auto linked = directory ? link_from(directory->get(), first.name, name, entry.rank,
                                          present && !S_ISDIR(present->st_mode))
                              : Result<void>(directory.error());
      if (!linked) {
        // Some file systems allow fewer links, or none; the name then becomes a separate file.
        shared_.problems.add(path_, "restored as a separate file, not as a hard link: " +
                                        errno_text(linked.error().errno_value()));
        return false;
      }
    }
  }
  ++shared_.entries;
  if (--first.names_left == 0) first_names_.erase(found);
  return true;
}

Result<void> TreeRestorer::link_from(int directory_fd, const std::string& first,
                                     const std::string& name, Rank rank, bool replaces) {
  std::string made = name;
  if (replaces) {
    VARVE_TRY(log_->start());
    made = log_->temporary_name(rank);
    if (log_->resumes()) (void)::unlinkat(directories_.top(), made.c_str(), 0);
  }
  if (::linkat(directory_fd, first.c_str(), directories_.top(), made.c_str(), 0) != 0) {
    return system_error("link", errno);
  }
  if (replaces && ::renameat(directories_.top(), made.c_str(), directories_.top(), name.c_str())) {
    const int reason = errno;
    (void)::unlinkat(directories_.top(), made.c_str(), 0);
    return system_error("rename", reason);
  }
  return {};
}

/// Opens a directory of the target, name by name: the whole path may be too long for a system call,
/// and no part of the path may be a symlink.
Result<UniqueFd> TreeRestorer::open_place(const PlacePtr& place) {
  std::vector<const Place*> way;
  for (const Place* at = place.get(); at != nullptr; at = at->parent.get()) way.push_back(at);
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_PATH;
  UniqueFd fd(::openat(root_.get(), ".", kFlags));
  for (auto at = way.rbegin(); fd.valid() && at != way.rend(); ++at) {
    fd = UniqueFd(open_beneath(fd.get(), (*at)->name.c_str(), kFlags));
  }
  if (!fd.valid()) return system_error("open", errno);
  return fd;
}

}  // namespace varve::transfer
