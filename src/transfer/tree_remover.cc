// SPDX-License-Identifier: Apache-2.0
#include "transfer/tree_remover.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transfer/source_listing.h"
#include "transfer/target_entry.h"
#include "transfer/transfer_error.h"

namespace varve::transfer {

bool TreeRemover::remove(int directory_fd, const std::string& name, const std::string& path) {
  path_ = path;
  stack_ = DirectoryStack();
  levels_.clear();
  struct stat above {};
  if (::fstat(directory_fd, &above) != 0) return fail(errno_text(errno)) == Step::kRemoved;
  device_ = above.st_dev;
  Step last = start(directory_fd, name, path_.size());
  while (!levels_.empty()) {
    Level& level = levels_.back();
    if (!level.names.empty()) {
      const std::string next = std::move(level.names.back());
      level.names.pop_back();
      const std::size_t path_bytes = path_.size();
      path_ += "/" + next;
      const std::size_t depth = levels_.size();
      last = start(stack_.top(), next, path_bytes);
      if (last == Step::kKept) levels_[depth - 1].is_kept = true;
      if (last != Step::kEntered) path_.resize(path_bytes);
      continue;
    }
    const Level emptied = std::move(level);
    levels_.pop_back();
    // The names above can no longer be trusted if a directory was moved.
    if (const auto left = stack_.pop(); !left) {
      return fail(left.error().message()) == Step::kRemoved;
    }
    const int fd = levels_.empty() ? directory_fd : stack_.top();
    last = emptied.is_kept ? Step::kKept : unlink(fd, emptied.name, AT_REMOVEDIR);
    if (last == Step::kKept && !levels_.empty()) levels_.back().is_kept = true;
    path_.resize(emptied.path_bytes);
  }
  return last == Step::kRemoved;
}

/// Removes an entry, or enters a directory to empty the directory first.
TreeRemover::Step TreeRemover::start(int directory_fd, const std::string& name,
                                     std::size_t path_bytes) {
  struct stat status {};
  if (::fstatat(directory_fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Step::kRemoved : fail(errno_text(errno));
  }
  if (S_ISDIR(status.st_mode)) return enter(directory_fd, name, path_bytes);
  if (is_mounted_file(directory_fd, name)) return keep("is a mount point");
  return unlink(directory_fd, name, 0);
}

TreeRemover::Step TreeRemover::enter(int directory_fd, const std::string& name,
                                     std::size_t path_bytes) {
  base::UniqueFd opened(open_in_same_mount(directory_fd, name.c_str(), kDirectoryFlags));
  if (!opened.valid() && errno == EXDEV) {
    // The reason says more than "a mount point" if a repository is there.
    opened = base::UniqueFd(open_beneath(directory_fd, name.c_str(), kDirectoryFlags));
    const auto reason =
        opened.valid() ? folders_.reason_not_to_remove(opened.get(), device_) : std::nullopt;
    return keep(reason.value_or("is a mount point"));
  }
  if (!opened.valid()) return fail(errno_text(errno));
  // The names are listed before the check of the directory: a repository created later has none of
  // the listed names.
  auto names = list_names(opened.get());
  if (!names) return fail(names.error().message());
  if (const auto reason = folders_.reason_not_to_remove(opened.get(), device_)) {
    return keep(*reason);
  }
  if (const auto pushed = stack_.push(std::move(opened)); !pushed) {
    return fail(pushed.error().message());
  }
  levels_.push_back(Level{std::move(*names), name, path_bytes});
  return Step::kEntered;
}

TreeRemover::Step TreeRemover::unlink(int directory_fd, const std::string& name, int flags) {
  if (!dry_run_ && ::unlinkat(directory_fd, name.c_str(), flags) != 0) {
    return errno == ENOENT ? Step::kRemoved : fail(errno_text(errno));
  }
  removed_(path_);
  return Step::kRemoved;
}

TreeRemover::Step TreeRemover::keep(const std::string& reason) {
  kept_(path_, "kept: it " + reason);
  return Step::kKept;
}

TreeRemover::Step TreeRemover::fail(const std::string& message) {
  kept_(path_, "not removed: " + message);
  return Step::kKept;
}

}  // namespace varve::transfer
