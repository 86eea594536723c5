// SPDX-License-Identifier: Apache-2.0
#include "fs/version_directory.h"

#include <fmt/core.h>
#include <unistd.h>

#include <ctime>
#include <mutex>
#include <string>
#include <utility>

#include "base/calendar_text.h"
#include "base/log.h"
#include "fs/node_id.h"
#include "fs/timeouts.h"

namespace varve::fs {
namespace {

std::string utc(const Timestamp& time) {
  return base::calendar_text(time, ::gmtime_r, "%Y-%m-%dT%H:%M:%SZ")
      .value_or(std::to_string(time.seconds));
}

std::optional<std::string> own_version_xattr(const VersionInfo& info, std::string_view name) {
  const bool sealed = info.state == VersionState::kSealed;
  if (name == "user.varve.state") return sealed ? "sealed" : "open";
  if (!sealed) return std::nullopt;
  if (name == "user.varve.sealed_at") return utc(info.sealed_at);
  if (name == "user.varve.unique_bytes") return std::to_string(info.unique_bytes);
  return std::nullopt;
}

/// Returns the path of the mount's root in the repository.
std::string path_of_root(const Node& root) {
  switch (root.kind) {
    case Node::Kind::kSeries:
      return root.slot->series_name();
    case Node::Kind::kOpen:
      return root.slot->series_name() + "/" + root.writer->info().name;
    case Node::Kind::kSealed:
      return root.slot->series_name() + "/" + root.reader->info().name;
    default:
      return {};
  }
}

}  // namespace

Result<void> VersionDirectory::set_root(const std::string& series, const std::string& version) {
  if (series.empty()) return {};
  auto found = repository_.find_series(series);
  if (!found) {
    if (found.error().code() != ErrorCode::kNotFound) return std::move(found).error();
    return Error(ErrorCode::kNotFound, fmt::format("there is no series \"{}\" in {}", series,
                                                   repository_.present_path()));
  }
  if (version.empty()) {
    const Slot& slot = nodes_.slots().series(*found);
    nodes_.set_root(pack({.slot = slot.index(), .open = false, .low = kSeriesDirectory}));
    return {};
  }
  auto info = repository_.find_version(found->id, version);
  if (!info) {
    if (info.error().code() != ErrorCode::kNotFound) return std::move(info).error();
    return Error(ErrorCode::kNotFound,
                 version == kLatestName
                     ? fmt::format("series \"{}\" has no sealed version", series)
                     : fmt::format("there is no version \"{}/{}\" in {}{}", series, version,
                                   repository_.present_path(),
                                   repository_.read_only() ? " that is sealed" : ""));
  }
  VARVE_TRY_ASSIGN(const fuse_entry_param root, version_entry(*found, *info));
  nodes_.set_root(root.ino);
  return {};
}

std::string VersionDirectory::root_path() {
  const auto node = nodes_.resolve(kRootNodeId);
  return node ? path_of_root(*node) : std::string();
}

Result<fuse_entry_param> VersionDirectory::version_entry(const SeriesInfo& series,
                                                         const VersionInfo& info) {
  VARVE_TRY_ASSIGN(Slot * slot, nodes_.load_version(series, info));
  const Slot::Tree tree = slot->tree();
  fuse_entry_param entry{};
  if (tree.reader != nullptr) {
    VARVE_TRY_ASSIGN(const SealedEntry root, tree.reader->get(0));
    entry = attributes_.entry(*slot, root);
  } else if (tree.writer != nullptr) {
    VARVE_TRY_ASSIGN(const OpenEntry root, tree.writer->get(kRootIno));
    entry = attributes_.entry(*slot, root);
  } else {
    return Error(ErrorCode::kNotFound, "the version is gone");
  }
  entry.entry_timeout = kSeriesTimeoutS;
  return entry;
}

Result<fuse_entry_param> VersionDirectory::look_up_series(std::string_view name) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository_.find_series(name));
  const Slot& slot = nodes_.slots().series(series);
  fuse_entry_param entry{};
  entry.ino = pack({.slot = slot.index(), .open = false, .low = kSeriesDirectory});
  entry.generation = slot.generation();
  entry.attr = attributes_.of(series);
  entry.attr_timeout = entry.entry_timeout = kSeriesTimeoutS;
  return entry;
}

Result<fuse_entry_param> VersionDirectory::look_up_version(const Node& series_node,
                                                           std::string_view name) {
  const SeriesInfo& series = series_node.slot->series();
  if (name == kLatestName && beside_.hides_latest(series_node)) {
    return beside_.look_up(series_node, name);
  }
  const auto info = repository_.find_version(series.id, name);
  if (!info && info.error().code() == ErrorCode::kNotFound) {
    return beside_.look_up(series_node, name);
  }
  if (!info) return info.error();
  if (name != kLatestName) return version_entry(series, *info);
  Node node;
  node.kind = Node::Kind::kLatest;
  node.slot = &nodes_.slots().series(series);
  fuse_entry_param entry{};
  VARVE_TRY_ASSIGN(entry.attr, attributes_.of(node));
  entry.ino = pack({.slot = node.slot->index(), .open = false, .low = kSeriesLatest});
  entry.generation = node.slot->generation();
  entry.attr_timeout = entry.entry_timeout = attributes_.latest_timeout_s();
  return entry;
}

Result<fuse_entry_param> VersionDirectory::make_series(std::string_view name) {
  VARVE_TRY(repository_.create_series(name));
  return look_up_series(name);
}

Result<fuse_entry_param> VersionDirectory::make_version(const SeriesInfo& series,
                                                        std::string_view name,
                                                        const NewFile& root) {
  const std::lock_guard lock(changes_.mutex_of(series.id));
  VARVE_TRY(changes_.end_present_version(series, name, VersionNumber{}));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository_.open_version(series.id, name, root));
  return version_entry(series, info);
}

Result<void> VersionDirectory::remove_series(std::string_view name) {
  VARVE_TRY_ASSIGN(const SeriesInfo series, repository_.find_series(name));
  VARVE_TRY(repository_.remove_series(name));
  if (Slot* slot = nodes_.slots().find(series.id, VersionNumber{})) {
    struct stat last = attributes_.of(series);
    last.st_nlink = 0;
    slot->remove(last);
  }
  return {};
}

// The kernel may hold the root after rmdir(2), as the current directory of a program.
std::optional<struct stat> VersionDirectory::last_attributes(const Slot* slot) const {
  if (slot == nullptr) return std::nullopt;
  const Slot::Tree tree = slot->tree();
  const auto removed = [](struct stat last) {
    last.st_nlink = 0;
    return std::optional(last);
  };
  if (tree.writer != nullptr) {
    if (const auto root = tree.writer->get(kRootIno)) return removed(attributes_.of(*slot, *root));
  } else if (tree.reader != nullptr) {
    if (const auto root = tree.reader->get(0)) return removed(attributes_.of(*slot, *root));
  }
  return std::nullopt;
}

Result<void> VersionDirectory::delete_sealed(const SeriesInfo& series, const VersionInfo& info) {
  if (!attributes_.show().rmdir_deletes) {
    if (!removals_.are_accepted()) {
      return Error(ErrorCode::kReadOnly, "rmdir does not remove a sealed version; use `varve rm`");
    }
    VARVE_TRY_ASSIGN(Slot * slot, nodes_.load_version(series, info));
    const auto reader = slot->tree().reader;
    if (reader == nullptr) return Error(ErrorCode::kNotFound, "the version is gone");
    VARVE_TRY_ASSIGN(const bool empty, removals_.is_empty(*slot, *reader, 0));
    if (!empty) return Error(ErrorCode::kNotEmpty, "the version has names");
  }
  const auto deleted = changes_.delete_after_last_close(series.id, {info.number}, {});
  if (!deleted) {
    base::log(base::LogLevel::kWarning, fmt::format("cannot remove {}/{}: {}", series.name,
                                                    info.name, deleted.error().message()));
    return deleted.error();
  }
  changes_.forget_latest(series.id);
  return {};
}

Result<void> VersionDirectory::remove_version(const SeriesInfo& series, std::string_view name) {
  if (name == kLatestName)
    return Error(ErrorCode::kNotPermitted, "latest cannot be changed; it follows the versions");
  const std::lock_guard lock(changes_.mutex_of(series.id));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository_.find_version(series.id, name));
  const auto last = last_attributes(nodes_.slots().find(series.id, info.number));
  if (info.state == VersionState::kSealed) {
    VARVE_TRY(delete_sealed(series, info));
  } else {
    VARVE_TRY(repository_.abandon_version(series.id, info.number, false));
  }
  if (Slot* slot = nodes_.slots().find(series.id, info.number)) {
    slot->drop();
    if (last) slot->remove(*last);
    removals_.forget(*slot);
  }
  return {};
}

Result<void> VersionDirectory::rename_version(const SeriesInfo& series, std::string_view name,
                                              std::string_view new_name) {
  if (name == kLatestName)
    return Error(ErrorCode::kNotPermitted, "latest cannot be changed; it follows the versions");
  const std::lock_guard lock(changes_.mutex_of(series.id));
  VARVE_TRY_ASSIGN(const VersionInfo info, repository_.find_version(series.id, name));
  if (new_name == kLatestName || repository_.find_version(series.id, new_name)) {
    return Error(ErrorCode::kExists, "a version of this name exists");
  }
  const bool was_partial = is_partial_name(name);
  const bool becomes_partial = is_partial_name(new_name);
  if (info.state == VersionState::kOpen && was_partial && !becomes_partial) {
    VARVE_TRY(changes_.seal_after_last_close(series.id, info.number, new_name));
    return {};
  }
  if (becomes_partial != was_partial) {
    return Error(ErrorCode::kNotPermitted, "a sealed version cannot become partial again");
  }
  VARVE_TRY(repository_.rename_version(series.id, info.number, new_name));
  changes_.forget_latest(series.id);
  return {};
}

Result<std::vector<DirHandle::Name>> VersionDirectory::list(const Node& directory) {
  std::vector<DirHandle::Name> names;
  if (directory.kind == Node::Kind::kRoot) {
    VARVE_TRY_ASSIGN(const auto all, repository_.series());
    for (const SeriesInfo& series : all) {
      names.push_back({series.name, st_ino_of_series(series.id), S_IFDIR});
    }
    return names;
  }
  beside_.list(directory, names);
  if (directory.kind == Node::Kind::kBeside) return names;
  const SeriesId series = directory.slot->series().id;
  VARVE_TRY_ASSIGN(const auto all, repository_.versions(series));
  bool any_sealed = false;
  for (const VersionInfo& version : all) {
    const bool sealed = version.state == VersionState::kSealed;
    any_sealed = any_sealed || sealed;
    const std::uint64_t st_ino = sealed ? st_ino_of_sealed(series, version.number, 0, 0)
                                        : st_ino_of_open(series, version.number, kRootIno);
    names.push_back({version.name, st_ino, S_IFDIR});
  }
  if (any_sealed && !beside_.hides_latest(directory))
    names.push_back({std::string(kLatestName), st_ino_of_latest(series), S_IFLNK});
  return names;
}

Result<std::string> VersionDirectory::latest_target(const Node& latest) {
  VARVE_TRY_ASSIGN(VersionInfo info,
                   repository_.find_version(latest.slot->series().id, kLatestName));
  return std::move(info.name);
}

std::optional<std::string> VersionDirectory::own_xattr(fuse_ino_t ino, const Node& node,
                                                       std::string_view name) {
  if (ino == kRootNodeId && name == "user.varve.repository") return repository_.present_path();
  if (ino == kRootNodeId && name == "user.varve.pid") return std::to_string(getpid());
  if (ino == kRootNodeId && name == "user.varve.access") {
    return repository_.read_only() ? "ro" : "rw";
  }
  if (ino == kRootNodeId && name == "user.varve.root") return path_of_root(node);
  if (!node.is_version_root()) return std::nullopt;
  // The repository returns the present name; an opened reader keeps the name from before a rename.
  return own_version_xattr(
      node.kind == Node::Kind::kOpen ? node.writer->info() : node.reader->info(), name);
}

}  // namespace varve::fs
