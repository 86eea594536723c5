// SPDX-License-Identifier: Apache-2.0
// The tree operations of an open version: looking names up, making, linking, removing, renaming.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/result.h"
#include "version/checkpointer.h"
#include "version/clone_sources.h"
#include "version/open_contents.h"
#include "version/open_inode.h"
#include "version/open_state.h"
#include "version/removed_inodes.h"

namespace varve::version {

/// The names in an open version. Public functions implement VersionWriter's functions of the same
/// names, and are thread-safe. A change that adds to the memory for changes ends with
/// Checkpointer::relieve().
class OpenNames {
 public:
  /// Lifetime: every argument must outlive the object.
  OpenNames(OpenState& state, OpenContents& contents, CloneSources& clones,
            Checkpointer& checkpointer, RemovedInodes& removed)
      : state_(state),
        contents_(contents),
        clones_(clones),
        checkpointer_(checkpointer),
        removed_(removed) {}
  OpenNames(const OpenNames&) = delete;
  OpenNames& operator=(const OpenNames&) = delete;

  [[nodiscard]] Result<OpenEntry> lookup(Ino directory, std::string_view name);
  [[nodiscard]] Result<Ino> parent(Ino directory);
  [[nodiscard]] Result<void> list(Ino directory, std::string_view after,
                                  const VersionWriter::Visitor& visit);
  [[nodiscard]] Result<OpenEntry> create(Ino directory, std::string_view name, const NewFile& file);
  [[nodiscard]] Result<OpenEntry> link(Ino target, Ino directory, std::string_view name);
  [[nodiscard]] Result<OpenEntry> clone(VersionReader& source, Rank rank, Ino directory,
                                        std::string_view name);
  [[nodiscard]] Result<void> unlink(Ino directory, std::string_view name);
  [[nodiscard]] Result<void> remove_directory(Ino directory, std::string_view name);
  [[nodiscard]] Result<void> rename(Ino from_directory, std::string_view from_name,
                                    Ino to_directory, std::string_view to_name, RenameMode mode);

 private:
  /// A hard-linked file of a sealed version: the version's number, and the file's link group.
  using LinkGroup = std::pair<VersionNumber, std::uint64_t>;
  /// A name in a directory held in memory.
  struct Place {
    OpenInode& directory;
    std::string_view name;
  };

  // For all private functions, the caller holds OpenState::mutex.

  /// Returns a directory. Fails if the directory was removed.
  [[nodiscard]] Result<OpenInode*> directory(Ino ino);
  /// Returns the inode with the name. Errors: kNotFound.
  [[nodiscard]] Result<OpenInode*> child(Ino directory, std::string_view name);
  /// Returns the directory for a new name. Fails if the name is in use.
  [[nodiscard]] Result<OpenInode*> directory_for_new(Ino ino, std::string_view name);
  /// Checks that the move of `moved` into `into` puts no directory below itself.
  [[nodiscard]] Result<void> check_ancestry(Ino moved, Ino into);
  /// Adds `children` to the directory's number of names, and `subdirectories` to the directory's
  /// number of subdirectories. Both are negative for removed names.
  void touch_directory(OpenInode& directory, std::int64_t children, int subdirectories);
  /// Removes a name. Drops an inode that has become unused.
  [[nodiscard]] Result<void> drop_name(const Place& place, OpenInode& inode);
  /// Exchanges the names of `a`, in `from`, and of `b`, in `to`.
  [[nodiscard]] Result<void> exchange(const Place& from, OpenInode& a, const Place& to,
                                      OpenInode& b);
  /// Checks that a rename may replace `target`. `from` is the former directory of `moved`.
  [[nodiscard]] static Result<void> check_replaceable(const OpenInode& moved,
                                                      const OpenInode& target,
                                                      const OpenInode& from);
  /// Returns the earlier clone of the link group, if the clone still has a name.
  [[nodiscard]] std::optional<Ino> cloned_before(const LinkGroup& group);

  OpenState& state_;
  OpenContents& contents_;
  CloneSources& clones_;
  Checkpointer& checkpointer_;
  RemovedInodes& removed_;
  std::map<LinkGroup, Ino> cloned_groups_;  // Cloned since the start.
};

}  // namespace varve::version
