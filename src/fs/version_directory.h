// SPDX-License-Identifier: Apache-2.0
// The two upper levels of the mount: the root with the series, and each series with its versions.
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <sys/stat.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/beside_names.h"
#include "fs/handles.h"
#include "fs/node_attributes.h"
#include "fs/node_table.h"
#include "fs/sealed_removals.h"
#include "fs/version_changes.h"
#include "varve/backup.h"
#include "varve/repository.h"
#include "varve/result.h"
#include "varve/types.h"
#include "varve/version_name.h"

namespace varve::fs {

/// Name of the link to a series' newest sealed version.
inline constexpr std::string_view kLatestName = "latest";
/// Prefix of Varve's own attributes at the root of a version or of the mount. listxattr(2) hides
/// Varve's attributes, so cp, rsync and comparisons ignore the attributes. All other files may have
/// any attributes with the prefix.
inline constexpr std::string_view kOwnXattrPrefix = "user.varve.";

/// Finds, creates, removes, renames and lists series and versions by name, for requests of the
/// kernel. Thread-safe.
class VersionDirectory {
 public:
  /// Parts of the mount for changing versions.
  struct Changes {
    VersionChanges& versions;
    SealedRemovals& removals;
    BesideNames& beside;
  };
  /// Lifetime: the arguments must outlive the object.
  VersionDirectory(Repository& repository, NodeTable& nodes, const NodeAttributes& attributes,
                   const Changes& changes)
      : repository_(repository),
        nodes_(nodes),
        attributes_(attributes),
        changes_(changes.versions),
        removals_(changes.removals),
        beside_(changes.beside) {}

  /// Sets the root of the mount: a series, a version of a series, or, with "" for both, the whole
  /// repository. Must be called before the first request.
  /// Errors: kNotFound, with the missing name.
  [[nodiscard]] Result<void> set_root(const std::string& series, const std::string& version);
  /// Returns the repository path of the mount's root: SERIES, SERIES/VERSION, or "" for all.
  [[nodiscard]] std::string root_path();

  /// Returns whether the repository is open read-only.
  [[nodiscard]] bool read_only() const { return repository_.read_only(); }

  /// Returns the entry of a series.
  /// Errors: kNotFound.
  [[nodiscard]] Result<fuse_entry_param> look_up_series(std::string_view name);
  /// Returns the entry of a version, of a file beside the versions, or of `latest`. The first
  /// lookup of a version loads the version from disk. Errors: kNotFound.
  [[nodiscard]] Result<fuse_entry_param> look_up_version(const Node& series_node,
                                                         std::string_view name);
  /// Creates a series.
  /// Errors: the errors of Repository::create_series().
  [[nodiscard]] Result<fuse_entry_param> make_series(std::string_view name);
  /// Opens a version, after sealing the present version as Repository::open_version() does.
  /// Errors: the errors of Repository::open_version().
  [[nodiscard]] Result<fuse_entry_param> make_version(const SeriesInfo& series,
                                                      std::string_view name, const NewFile& root);
  /// Removes an empty series.
  /// Errors: kNotFound; kNotEmpty if the series has versions.
  [[nodiscard]] Result<void> remove_series(std::string_view name);
  /// Removes an open, empty version. Deletes a sealed version with ShowOptions::rmdir_deletes, or
  /// with rm_deletes once all names of the version are removed.
  /// Errors: kReadOnly or kNotEmpty for a sealed version otherwise; kNotPermitted for `latest`;
  /// kBusy while files are open; the errors of Repository::delete_versions().
  [[nodiscard]] Result<void> remove_version(const SeriesInfo& series, std::string_view name);
  /// Renames a version. Seals an open version if the new name no longer ends in `.partial`.
  /// Errors: kExists; kNotPermitted for `latest` and for a partial name in place of a complete
  /// name; kBusy if files of a version to seal are open for writing.
  [[nodiscard]] Result<void> rename_version(const SeriesInfo& series, std::string_view name,
                                            std::string_view new_name);

  /// Returns the entries of the root, of a series, or of a folder beside versions.
  [[nodiscard]] Result<std::vector<DirHandle::Name>> list(const Node& directory);
  /// Returns the name of a series' newest sealed version.
  [[nodiscard]] Result<std::string> latest_target(const Node& latest);
  /// Returns the value of an attribute with kOwnXattrPrefix; nullopt if Varve provides none.
  [[nodiscard]] std::optional<std::string> own_xattr(fuse_ino_t ino, const Node& node,
                                                     std::string_view name);

 private:
  /// Returns the entry of a version, after loading the version.
  [[nodiscard]] Result<fuse_entry_param> version_entry(const SeriesInfo& series,
                                                       const VersionInfo& info);
  /// Deletes a sealed version, if allowed by the mount's options.
  [[nodiscard]] Result<void> delete_sealed(const SeriesInfo& series, const VersionInfo& info);
  /// Returns the attributes of a version's root after the root's removal.
  [[nodiscard]] std::optional<struct stat> last_attributes(const Slot* slot) const;

  Repository& repository_;
  NodeTable& nodes_;
  const NodeAttributes& attributes_;
  VersionChanges& changes_;
  SealedRemovals& removals_;
  BesideNames& beside_;
};

}  // namespace varve::fs
