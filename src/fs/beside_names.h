// SPDX-License-Identifier: Apache-2.0
// Names of backup programs beside the versions of a series (mount option beside).
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/handles.h"
#include "fs/node_attributes.h"
#include "fs/node_table.h"
#include "fs/version_changes.h"
#include "varve/backup.h"
#include "varve/beside.h"
#include "varve/repository.h"
#include "varve/result.h"

namespace varve::fs {

/// Finds, creates, removes and renames files beside versions, for requests of the kernel. Folders
/// are told from versions by the patterns of the mount. Existing names work in every mount; the
/// option is needed only to create some. All functions may wait for the disk. Thread-safe.
///
/// A program's own link `latest` replaces Varve's link. In a mount with the option, removing
/// `latest` hides `latest` until a program creates the link, or until the next mount.
class BesideNames {
 public:
  /// Lifetime: the arguments must outlive the object.
  BesideNames(Repository& repository, const NodeAttributes& attributes, VersionChanges& changes)
      : repository_(repository), attributes_(attributes), changes_(changes) {}

  /// Returns whether a node is a directory of names beside versions: a series or a folder.
  [[nodiscard]] static bool is_place(const Node& node) {
    return node.kind == Node::Kind::kSeries || node.kind == Node::Kind::kBeside;
  }
  /// Returns whether mkdir(2) of a name in a series makes a folder instead of a version.
  [[nodiscard]] bool is_folder_name(std::string_view name) const;
  /// Returns whether a series or folder has a file with the name.
  [[nodiscard]] bool has(const Node& directory, std::string_view name);
  /// Returns whether a series shows no `latest` of Varve's.
  [[nodiscard]] bool hides_latest(const Node& series);

  /// Errors of the functions below: the errors of BesideFiles, and kNotPermitted if the mount does
  /// not accept the name.
  [[nodiscard]] Result<fuse_entry_param> look_up(const Node& directory, std::string_view name);
  [[nodiscard]] Result<fuse_entry_param> create(const Node& directory, std::string_view name,
                                                const NewFile& file);
  [[nodiscard]] Result<void> unlink(const Node& directory, std::string_view name);
  [[nodiscard]] Result<void> remove_directory(const Node& directory, std::string_view name);
  [[nodiscard]] Result<void> rename(const Node& from, std::string_view name, const Node& to,
                                    std::string_view new_name, RenameMode mode);
  /// Adds the names of a series or folder to a listing. Logs damage.
  void list(const Node& directory, std::vector<DirHandle::Name>& names);
  /// Returns the entry of a file, made from the file's number.
  [[nodiscard]] fuse_entry_param entry(const Slot& series, const OpenEntry& file) const;

 private:
  [[nodiscard]] bool are_accepted() const;
  [[nodiscard]] Result<std::shared_ptr<BesideFiles>> files_of(const Node& directory);
  /// Checks that no version has the new name, and that a new `latest` is a link.
  [[nodiscard]] Result<void> check_new_name(const Node& directory, std::string_view name,
                                            std::uint32_t mode);

  Repository& repository_;
  const NodeAttributes& attributes_;
  VersionChanges& changes_;
  std::mutex mutex_;  // Innermost.
  std::set<SeriesId> without_latest_;
};

}  // namespace varve::fs
