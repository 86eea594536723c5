// SPDX-License-Identifier: Apache-2.0
#include "fs/beside_names.h"

#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/log.h"
#include "fs/node_id.h"
#include "varve/version_name.h"

namespace varve::fs {
namespace {

/// Returns the number of a directory in the BesideFiles of the series.
Ino number_of(const Node& directory) {
  return directory.kind == Node::Kind::kBeside ? directory.ino : kRootIno;
}

}  // namespace

bool BesideNames::are_accepted() const {
  return attributes_.show().beside.has_value() && !repository_.read_only();
}

bool BesideNames::is_folder_name(std::string_view name) const {
  if (!are_accepted()) return false;
  return std::ranges::any_of(*attributes_.show().beside, [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
  });
}

Result<std::shared_ptr<BesideFiles>> BesideNames::files_of(const Node& directory) {
  if (directory.beside != nullptr) return directory.beside;
  return repository_.beside(directory.slot->series().id);
}

fuse_entry_param BesideNames::entry(const Slot& series, const OpenEntry& file) const {
  fuse_entry_param result = attributes_.entry(series, file);
  result.attr_timeout = result.entry_timeout = attributes_.latest_timeout_s();
  return result;
}

bool BesideNames::has(const Node& directory, std::string_view name) {
  const auto files = files_of(directory);
  return files && (*files)->lookup(number_of(directory), name).has_value();
}

bool BesideNames::hides_latest(const Node& series) {
  if (has(series, kLatestName)) return true;
  const std::lock_guard lock(mutex_);
  return without_latest_.contains(series.slot->series().id);
}

Result<fuse_entry_param> BesideNames::look_up(const Node& directory, std::string_view name) {
  VARVE_TRY_ASSIGN(const auto files, files_of(directory));
  VARVE_TRY_ASSIGN(const OpenEntry found, files->lookup(number_of(directory), name));
  return entry(*directory.slot, found);
}

Result<void> BesideNames::check_new_name(const Node& directory, std::string_view name,
                                         std::uint32_t mode) {
  if (directory.kind != Node::Kind::kSeries) return {};
  if (name == kLatestName) {
    if (S_ISLNK(mode)) return {};
    return Error(ErrorCode::kNotPermitted, "only a symbolic link can be called latest");
  }
  const SeriesId series = directory.slot->series().id;
  if (repository_.find_version(series, name) ||
      repository_.find_version(series, partial_name(name))) {
    return Error(ErrorCode::kExists, "a version has this name");
  }
  return {};
}

Result<fuse_entry_param> BesideNames::create(const Node& directory, std::string_view name,
                                             const NewFile& file) {
  if (!are_accepted()) {
    return Error(ErrorCode::kNotPermitted,
                 "files must be in a version; the mount option beside allows some beside them");
  }
  VARVE_TRY_ASSIGN(const auto files, files_of(directory));
  const std::lock_guard lock(changes_.mutex_of(directory.slot->series().id));
  VARVE_TRY(check_new_name(directory, name, file.mode));
  VARVE_TRY_ASSIGN(const OpenEntry made, files->create(number_of(directory), name, file));
  return entry(*directory.slot, made);
}

Result<void> BesideNames::unlink(const Node& directory, std::string_view name) {
  VARVE_TRY_ASSIGN(const auto files, files_of(directory));
  auto removed = files->unlink(number_of(directory), name);
  const bool missing = !removed && removed.error().code() == ErrorCode::kNotFound;
  if (directory.kind != Node::Kind::kSeries) return removed;
  if (name == kLatestName && (removed || missing) && are_accepted()) {
    const std::lock_guard lock(mutex_);
    without_latest_.insert(directory.slot->series().id);
    return {};
  }
  if (missing) {
    return Error(ErrorCode::kNotPermitted, "latest and versions are not removed by unlink");
  }
  return removed;
}

Result<void> BesideNames::remove_directory(const Node& directory, std::string_view name) {
  VARVE_TRY_ASSIGN(const auto files, files_of(directory));
  return files->remove_directory(number_of(directory), name);
}

Result<void> BesideNames::rename(const Node& from, std::string_view name, const Node& to,
                                 std::string_view new_name, RenameMode mode) {
  VARVE_TRY_ASSIGN(const auto files, files_of(from));
  const auto moved = files->lookup(number_of(from), name);
  if (!moved && from.kind == Node::Kind::kSeries) {
    return Error(ErrorCode::kNotPermitted, "a version cannot leave its series");
  }
  if (!moved) return moved.error();
  const bool leaves_names = to.kind == Node::Kind::kSeries && !is_folder_name(new_name);
  if (S_ISDIR(moved->attributes.mode) && leaves_names) {
    return Error(ErrorCode::kNotPermitted,
                 "the mount option beside allows no folder of the new name");
  }
  const std::lock_guard lock(changes_.mutex_of(from.slot->series().id));
  VARVE_TRY(check_new_name(to, new_name, moved->attributes.mode));
  return files->rename(number_of(from), name, number_of(to), new_name, mode);
}

void BesideNames::list(const Node& directory, std::vector<DirHandle::Name>& names) {
  const auto files = files_of(directory);
  if (!files) return;
  const auto all = (*files)->list(number_of(directory));
  if (!all) return;
  const SeriesId series = directory.slot->series().id;
  for (const auto& [name, file] : *all) {
    names.push_back(
        {name, st_ino_of_open(series, VersionNumber{}, file.ino), file.attributes.mode & S_IFMT});
  }
}

}  // namespace varve::fs
