// SPDX-License-Identifier: Apache-2.0
#include "cli/own_mounts.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/system_error.h"
#include "cli/repository_access.h"
#include "control/mounted_path.h"

namespace varve::cli {
namespace {

Result<std::vector<control::MountEntry>> mounts_of(const std::string& named) {
  VARVE_TRY_ASSIGN(const std::string repository, repository_at(named, control::Purpose::kLook));
  std::error_code error;
  const auto own = std::filesystem::canonical(repository, error);
  if (error) return base::io_error(repository, error.value());
  return control::find_mounts_of(own);
}

}  // namespace

std::vector<DirectoryIdentity> find_own_mounts(const std::string& repository,
                                               const std::string& directory) {
  std::error_code error;
  const auto own = std::filesystem::canonical(repository, error);
  const auto source = std::filesystem::canonical(directory, error);
  const auto mounts = control::find_mounts_of(own);
  if (error || !mounts) return {};  // store_version() returns the error.
  std::vector<DirectoryIdentity> found;
  for (const auto& mount : *mounts) {
    const std::filesystem::path point = mount.mount_point;
    const auto differ = std::mismatch(source.begin(), source.end(), point.begin(), point.end());
    struct stat status {};
    if (differ.first == source.end() && ::lstat(point.c_str(), &status) == 0) {
      found.push_back({status.st_dev, status.st_ino});
    }
  }
  return found;
}

Result<void> leave_mounts_out(const std::string& repository, control::StoreTask& task) {
  VARVE_TRY_ASSIGN(const auto mounts, mounts_of(repository));
  for (const auto& mount : mounts) {
    if (mount.device == task.identity.device) {
      return Error(ErrorCode::kInvalid,
                   task.directory +
                       " is in a mount of the repository itself; to begin a version "
                       "with the tree of another one, use `varve clone`");
    }
    task.without_entries.push_back({mount.device, 0});
  }
  return {};
}

Result<void> check_outside_mounts(const std::string& repository, int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return base::io_error("the stream", errno);
  VARVE_TRY_ASSIGN(const auto mounts, mounts_of(repository));
  const bool is_inside =
      std::ranges::any_of(mounts, [&](const auto& mount) { return mount.device == status.st_dev; });
  if (!is_inside) return {};
  return Error(ErrorCode::kInvalid,
               "the stream is a file in a mount of the repository itself; copy it out of it first");
}

}  // namespace varve::cli
