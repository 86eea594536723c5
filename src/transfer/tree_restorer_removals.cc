// SPDX-License-Identifier: Apache-2.0
// Removes entries of the target, and leaves the folders of Varve and mount points alone.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <set>
#include <string>

#include "transfer/repository_data.h"
#include "transfer/source_listing.h"
#include "transfer/target_entry.h"
#include "transfer/transfer_error.h"
#include "transfer/tree_restorer.h"

namespace varve::transfer {

/// Refuses a target in a folder of Varve, unless an interrupted run of the restore made the target
/// a repository.
Result<void> TreeRestorer::check_target(const std::string& directory, const Frame& root) {
  if (root.absent) return {};
  VARVE_TRY_ASSIGN(const auto folder, FolderIdentity::of(root_.get()));
  root_device_ = folder.device;
  const bool is_ours = log_->made_repository(root.entry.rank, folder.inode);
  const auto place = is_ours ? ProtectedFolders::Place::kInside : ProtectedFolders::Place::kOutside;
  VARVE_TRY(folders_.check_above(root_.get(), place, directory, kOutsideAdvice));
  if (!options_.delete_others || is_ours) return {};
  return folders_.check_data_above(root_.get(), directory, kOutsideAdvice);
}

Result<void> TreeRestorer::remove_others(const Frame& frame) {
  std::set<std::string, std::less<>> wanted;
  const auto listed = version_.list(frame.entry.rank, 0,
                                    [&](std::uint64_t, std::string_view name, const SealedEntry&) {
                                      wanted.emplace(name);
                                      return true;
                                    });
  const std::string here = path_.empty() ? "." : path_;
  if (!listed) {
    // An unreadable name must not count as a missing name.
    shared_.problems.add(here, "nothing removed, because the version's entries are damaged");
    return {};
  }
  VARVE_TRY_ASSIGN(const auto names, list_names(directories_.top()));
  TreeRemover others = remover();
  std::optional<bool> has_data;
  for (const std::string& name : names) {
    if (wanted.contains(name) || log_->is_temporary_name(name)) continue;
    if (frame.place == nullptr && name == log_->name()) continue;
    const std::string path = path_.empty() ? name : path_ + "/" + name;
    // The directory is restored, as after an interrupted restore of a repository, but loses
    // nothing.
    if (!has_data) has_data = has_repository_data(directories_.top());
    if (*has_data) {
      keep(path, std::string("kept: the directory ") + kRepositoryDataReason);
      continue;
    }
    if (frame.is_elsewhere) {
      keep(
          path,
          "kept: it is on another file system or mount than the target; to remove it, restore that "
          "part by itself");
      continue;
    }
    static_cast<void>(others.remove(directories_.top(), name, path));
  }
  return {};
}

TreeRemover TreeRestorer::remover() {
  return {folders_, options_.dry_run,
          [this](const std::string& path) {
            ++report_.removed;
            tell(RestoreChange::kRemoved, path);
          },
          [this](const std::string& path, const std::string& message) { keep(path, message); }};
}

/// Reports an entry left unchanged by the restore.
void TreeRestorer::keep(const std::string& path, const std::string& message) {
  shared_.problems.add(path, message);
  if (options_.kept) options_.kept(path, message);
}

/// Refuses to change an existing directory of Varve, unless an interrupted run of the restore made
/// the directory a repository.
Result<void> TreeRestorer::check_existing(Frame& frame, int directory_fd) {
  VARVE_TRY_ASSIGN(const auto folder, FolderIdentity::of(directory_fd));
  frame.is_elsewhere =
      frames_.back().is_elsewhere || folder.is_mount_point || folder.device != root_device_;
  if (log_->made_repository(frame.entry.rank, folder.inode)) return {};
  const auto reason = folders_.reason_to_keep(directory_fd);
  if (!reason) return {};
  const std::string message = "kept: it " + *reason;
  if (options_.kept) options_.kept(path_, message);
  return Error(ErrorCode::kExists, message);
}

Result<TreeRestorer::Present> TreeRestorer::find_present(const std::string& name) {
  VARVE_TRY_ASSIGN(auto present, stat_entry(directories_.top(), name));
  if (present && !S_ISDIR(present->st_mode) && is_mounted_file(directories_.top(), name)) {
    const std::string message = "kept: it is a mount point";
    if (options_.kept) options_.kept(path_, message);
    return Error(ErrorCode::kExists, message);
  }
  if (present) VARVE_TRY(check_case(name));
  return present;
}

/// Checks that the existing entry `name` of the target does not belong to a different name of the
/// version.
Result<void> TreeRestorer::check_case(const std::string& name) {
  Frame& frame = frames_.back();
  if (!S_ISDIR(frame.entry.attributes.mode)) return {};  // A restore of a single file.
  VARVE_TRY_ASSIGN(const auto other, frame.folded.other_name(directories_.top(), name));
  if (!other) return {};
  const auto taken =
      version_.lookup(frame.entry.rank, *other) ? other : frame.folded.take(*other, name);
  if (!taken) return {};
  return Error(
      ErrorCode::kExists,
      "left out: the target does not tell it from \"" + *taken +
          "\" of the version; restore to a file system that tells upper and lower case apart");
}

Result<void> TreeRestorer::clear_way(const std::string& name, const Present& present) {
  if (!present || !S_ISDIR(present->st_mode)) return {};
  const auto left_out = [](const std::string& why) {
    return Error(ErrorCode::kNotEmpty, "left out: " + why);
  };
  const int above = directories_.top();
  if (options_.delete_others && !frames_.back().is_elsewhere) {
    if (remover().remove(above, name, path_)) return {};
    return left_out("a directory that stays has this name");
  }
  const base::UniqueFd fd(open_in_same_mount(above, name.c_str(), kDirectoryFlags));
  if (!fd.valid() && errno == EXDEV) return left_out("a mount point has this name");
  if (!fd.valid()) return system_error("open", errno);
  if (const auto reason = folders_.reason_to_keep(fd.get())) {
    return left_out("the directory of this name stays, because it " + *reason);
  }
  VARVE_TRY_ASSIGN(const auto names, list_names(fd.get()));
  const bool is_empty = names.empty();
  if (is_empty && (options_.dry_run || ::unlinkat(above, name.c_str(), AT_REMOVEDIR) == 0)) {
    return {};
  }
  if (is_empty && errno != ENOTEMPTY && errno != EEXIST) return system_error("rmdir", errno);
  return left_out(options_.delete_others
                      ? "a directory on another file system than the target has this name"
                      : "a directory that is not empty has this name; use --delete to remove it");
}

}  // namespace varve::transfer
