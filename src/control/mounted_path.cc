// SPDX-License-Identifier: Apache-2.0
#include "control/mounted_path.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <climits>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <utility>

#include "base/system_error.h"
#include "base/unique_fd.h"
#include "control/client.h"
#include "control/own_attribute.h"
#include "control/patience.h"
#include "control/place_folder.h"

namespace varve::control {
namespace {

/// The target of a path, as the kernel resolves it.
struct Place {
  std::int64_t mount_id = -1;
  std::string path;  ///< Absolute, without symbolic links.
};

std::optional<Place> resolve(const std::string& path) {
  const base::UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  Place place;
  std::ifstream info(fmt::format("/proc/self/fdinfo/{}", fd.get()));
  for (std::string line; std::getline(info, line);) {
    constexpr std::string_view kField = "mnt_id:";
    if (!line.starts_with(kField)) continue;
    const std::size_t digits = line.find_first_not_of(" \t", kField.size());
    if (digits == std::string::npos) continue;
    std::from_chars(line.data() + digits, line.data() + line.size(), place.mount_id);
  }
  char target[PATH_MAX];
  const std::string link = fmt::format("/proc/self/fd/{}", fd.get());
  const ssize_t bytes = ::readlink(link.c_str(), target, sizeof target);
  if (place.mount_id < 0 || bytes <= 0) return std::nullopt;
  place.path.assign(target, static_cast<std::size_t>(bytes));
  return place;
}

std::string absolute_by_name(const std::string& path) {
  std::error_code ignored;
  std::string absolute = std::filesystem::absolute(path, ignored).lexically_normal().string();
  while (absolute.size() > 1 && absolute.ends_with('/')) absolute.pop_back();
  return absolute;
}

Error not_in_a_mount(std::string_view path) {
  return {ErrorCode::kNotFound, fmt::format("{} is not inside a Varve mount", path)};
}

/// Rejects mounts of other users before any access: another user's file system may give false
/// answers, or never answer.
Result<void> check_user(const MountEntry& mount, std::string_view path) {
  if (!mount.is_fuse()) return not_in_a_mount(path);
  if (mount.user && (*mount.user == 0 || *mount.user == ::geteuid())) return {};
  if (mount.type != kFileSystemType) return not_in_a_mount(path);
  return Error(
      ErrorCode::kNotPermitted,
      fmt::format("{} was mounted by user {}, who can forge its content; Varve trusts only your "
                  "own mounts and those of root. Name the repository and the version instead of "
                  "a path; to unmount it, run `varve umount` as that user, or umount(8) as root",
                  mount.mount_point, mount.user ? std::to_string(*mount.user) : "unknown"));
}

Result<OwnAttribute> attribute(const MountEntry& mount, const std::string& name) {
  const auto answer = answer_within<OwnAttribute>(
      kSilenceMax, [point = mount.mount_point, name]() { return own_attribute(point, name); });
  if (!answer) {
    return Error(ErrorCode::kUnavailable,
                 fmt::format("{}: {}", mount.mount_point, advice_for_silence(0)));
  }
  return *answer;
}

bool is_dead(const OwnAttribute& answer) {
  return answer.error == ENOTCONN || answer.error == ECONNABORTED;
}

bool is_silent(const Error& error) { return error.code() == ErrorCode::kUnavailable; }

/// Returns the identity of the daemon at `repository`'s own socket, if the daemon owns `mount`.
/// Errors: kUnavailable if the daemon does not answer.
Result<std::optional<Identity>> confirm(const MountEntry& mount, const std::string& repository) {
  if (!repository.starts_with('/')) return std::optional<Identity>();
  const auto client = Client::connect(repository);
  if (!client) {
    if (is_silent(client.error())) return client.error();
    return std::optional<Identity>();
  }
  Identity identity = client->identity();
  if (identity.mount_device == 0 || identity.mount_device != mount.device) {
    return std::optional<Identity>();
  }
  identity.process = client->process();
  return std::optional<Identity>(std::move(identity));
}

/// Returns the error for a change through an unconfirmed mount.
Error refuses_changes(const MountEntry& mount, const std::string& repository) {
  if (const auto access = attribute(mount, "user.varve.access");
      access && access->error == 0 && access->value == std::string_view("ro")) {
    return {ErrorCode::kNotPermitted,
            fmt::format("{} is mounted read-only, so nothing can be changed through it; name the "
                        "repository {} instead of a path, or mount it without the option ro",
                        mount.mount_point, repository)};
  }
  // The daemon of root's mount answers root only.
  if (mount.user && *mount.user != ::geteuid() && ::geteuid() != 0) {
    return {ErrorCode::kNotPermitted,
            fmt::format("permission denied: user {} mounted {}, and only that user and root can "
                        "change the repository through it",
                        *mount.user, mount.mount_point)};
  }
  return {ErrorCode::kNotPermitted,
          fmt::format("the daemon of {} does not know the mount on {}, so another program may have "
                      "made it, and nothing can be changed through it; name the repository and the "
                      "version instead of a path",
                      repository, mount.mount_point)};
}

struct Found {
  MountEntry mount;
  std::string path;  ///< Absolute, inside the mount.
};

/// Finds the mount of `path` and checks the mount's user. The file system may be any FUSE file
/// system.
Result<Found> find_entry(const std::string& path) {
  const auto table = read_mount_table();
  const std::string by_name = absolute_by_name(path);
  const MountEntry* named = find_by_path(table, by_name);
  if (named != nullptr && named->is_fuse()) {
    VARVE_TRY(check_user(*named, path));
    // Asking the socket detects a stopped daemon; access to the path would hang.
    VARVE_TRY(confirm(*named, named->source));
  }
  const auto place =
      answer_within<std::optional<Place>>(kSilenceMax, [path] { return resolve(path); });
  if (!place) {
    return Error(ErrorCode::kUnavailable, fmt::format("{}: {}", path, advice_for_silence(0)));
  }
  Found found;
  if (*place) {
    found.path = (*place)->path;
    for (const MountEntry& entry : table) {
      if (entry.id == (*place)->mount_id) found.mount = entry;
    }
  } else if (named != nullptr) {
    // The path does not exist, or the daemon is dead and the kernel cannot resolve the path.
    found.path = by_name;
    found.mount = *named;
  }
  VARVE_TRY(check_user(found.mount, path));
  return found;
}

Error dead_daemon(const MountEntry& mount) {
  return {ErrorCode::kStale,
          fmt::format("{} is the mount point of a daemon that has died; free it with `varve umount "
                      "{}`",
                      mount.mount_point, mount.mount_point)};
}

/// Returns the repository that a mount claims to show.
Result<std::string> claimed_repository(const MountEntry& mount, const std::string& path) {
  VARVE_TRY_ASSIGN(OwnAttribute claimed, attribute(mount, "user.varve.repository"));
  if (is_dead(claimed)) {
    // The option subtype= changes the type of a Varve mount, but the source is still the
    // repository.
    const bool ours = mount.type == kFileSystemType || is_repository(mount.source);
    return ours ? dead_daemon(mount) : not_in_a_mount(path);
  }
  if (claimed.error != 0 || !claimed.value.starts_with('/')) return not_in_a_mount(path);
  return std::move(claimed.value);
}

}  // namespace

bool is_repository(const std::string& path) {
  struct stat values {};
  return ::stat((path + "/varve.repo").c_str(), &values) == 0 && S_ISREG(values.st_mode);
}

Result<MountedPath> find_mounted(const std::string& path, Purpose purpose) {
  VARVE_TRY_ASSIGN(Found found, find_entry(path));
  MountedPath mounted;
  std::string root;
  VARVE_TRY_ASSIGN(auto daemon, confirm(found.mount, found.mount.source));
  mounted.repository = found.mount.source;
  if (!daemon) {
    VARVE_TRY_ASSIGN(mounted.repository, claimed_repository(found.mount, path));
    VARVE_TRY_ASSIGN(daemon, confirm(found.mount, mounted.repository));
  }
  if (daemon) {
    root = daemon->mount_root;
  } else if (purpose == Purpose::kChange) {
    return refuses_changes(found.mount, mounted.repository);
  } else {
    VARVE_TRY_ASSIGN(OwnAttribute claimed, attribute(found.mount, "user.varve.root"));
    if (claimed.error != 0) {
      return base::io_error(found.mount.mount_point, claimed.error);
    }
    root = std::move(claimed.value);
  }
  mounted.in_repository = std::move(root);
  const std::string below = path_in_file_system(found.mount, found.path);
  if (!mounted.in_repository.empty() && !below.empty()) mounted.in_repository += '/';
  mounted.in_repository += below;
  mounted.mount = std::move(found.mount);
  return mounted;
}

Result<MountedThere> find_mounted_on(const std::string& directory) {
  VARVE_TRY_ASSIGN(Found found, find_entry(directory));
  MountedThere there;
  there.mount = std::move(found.mount);
  if (found.path != there.mount.mount_point) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("{} is not a mount point; {} is", directory, there.mount.mount_point));
  }
  VARVE_TRY_ASSIGN(auto daemon, confirm(there.mount, there.mount.source));
  if (daemon) {
    there.repository = there.mount.source;
    there.process = daemon->process;
    there.is_confirmed = true;
    return there;
  }
  auto claimed = claimed_repository(there.mount, directory);
  if (!claimed && claimed.error().code() == ErrorCode::kStale) {
    there.repository = there.mount.source;
    there.dead = true;
    return there;
  }
  if (!claimed) return std::move(claimed).error();
  there.repository = std::move(*claimed);
  VARVE_TRY_ASSIGN(daemon, confirm(there.mount, there.repository));
  if (daemon) {
    there.process = daemon->process;
    there.is_confirmed = true;
    return there;
  }
  VARVE_TRY_ASSIGN(const OwnAttribute access, attribute(there.mount, "user.varve.access"));
  there.read_only = access.error == 0 && access.value == std::string_view("ro");
  VARVE_TRY_ASSIGN(const OwnAttribute process, attribute(there.mount, "user.varve.pid"));
  std::from_chars(process.value.data(), process.value.data() + process.value.size(), there.process);
  return there;
}

namespace {

/// Returns whether a mount with a place in an object store as source claims to show `repository`.
bool claims(const MountEntry& mount, const std::string& repository) {
  if (mount.type != kFileSystemType || !names_store(mount.source)) return false;
  const auto claimed = attribute(mount, "user.varve.repository");
  return claimed && claimed->error == 0 && claimed->value == repository;
}

}  // namespace

Result<std::vector<MountEntry>> find_mounts_of(const std::string& repository) {
  const auto place = resolve(repository);
  if (!place) return Error(ErrorCode::kNotFound, fmt::format("{} does not exist", repository));
  std::vector<MountEntry> mounts;
  const auto client = Client::connect(place->path);
  if (!client && is_silent(client.error())) return client.error();
  for (MountEntry& entry : read_mount_table()) {
    if (!check_user(entry, repository)) continue;
    const bool confirmed = client && client->identity().mount_device == entry.device;
    const bool named = entry.type == kFileSystemType && entry.source == place->path;
    if (confirmed || named || claims(entry, place->path)) {
      mounts.push_back(std::move(entry));
    }
  }
  return mounts;
}

}  // namespace varve::control
