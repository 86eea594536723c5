// SPDX-License-Identifier: Apache-2.0
#include "fs/mount_main.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_limit.h"
#include "base/log.h"
#include "base/path_list.h"
#include "base/system_error.h"
#include "control/client_state.h"
#include "control/key_source.h"
#include "control/lock_wait.h"
#include "control/mounted_path.h"
#include "control/place_folder.h"
#include "fs/daemon.h"
#include "fs/remount.h"
#include "fs/service_manager.h"
#include "fs/session.h"
#include "varve/remote_folder.h"
#include "varve/replication.h"
#include "varve/repository.h"
#include "varve/restore.h"

namespace varve::fs {
namespace {

constexpr int kExitError = 1;
constexpr int kExitNoRepository = 10;
constexpr int kExitLocked = 11;
constexpr int kExitWrongKey = 12;

Result<std::string> absolute_path(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  if (real != nullptr) return std::string(real.get());
  return base::system_error(path, errno);
}

/// Returns success if no Varve file system is mounted on the directory.
Result<void> check_not_mounted(const std::string& directory) {
  const auto there = control::find_mounted_on(directory);
  if (!there) {
    const ErrorCode code = there.error().code();
    if (code == ErrorCode::kNotFound || code == ErrorCode::kInvalid) return {};
    return there.error();
  }
  if (there->dead) {
    return Error(ErrorCode::kBusy,
                 fmt::format("{} is the mount point of a daemon that has died; free it with "
                             "`varve umount {}`",
                             directory, directory));
  }
  return Error(ErrorCode::kBusy,
               fmt::format("{} is in use: repository {} is mounted there; unmount it with `varve "
                           "umount {}`, or choose another directory",
                           directory, there->repository, directory));
}

/// Returns the absolute path of a directory that can be a mount point.
Result<std::string> check_mount_point(const std::string& directory) {
  // Before stat(2): on a mount whose daemon is stopped, stat(2) hangs; if the daemon is dead, the
  // error of stat(2) says little.
  VARVE_TRY(check_not_mounted(directory));
  struct stat values {};
  if (::stat(directory.c_str(), &values) != 0) {
    if (errno == ENOENT) {
      return Error(ErrorCode::kNotFound,
                   fmt::format("mount point {} does not exist; create it with `mkdir -p {}`",
                               directory, directory));
    }
    return base::system_error(directory, errno);
  }
  if (!S_ISDIR(values.st_mode)) {
    return Error(ErrorCode::kNotDirectory,
                 fmt::format("mount point {} is not a directory", directory));
  }
  return absolute_path(directory);
}

/// Returns whether a folder is the mount point, or lies below the mount point.
bool lies_below(const std::string& folder, const std::string& mount_point) {
  for (std::filesystem::path at = folder;; at = at.parent_path()) {
    std::error_code absent;
    if (std::filesystem::equivalent(at, mount_point, absent)) return true;
    if (at == at.parent_path()) return false;
  }
}

/// Warns if the mount hides files of the mount point.
void warn_of_hidden_files(const std::string& directory) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(directory, error);
  if (error || entries == std::filesystem::directory_iterator()) return;
  base::log(base::LogLevel::kWarning,
            fmt::format("mount point {0} is not empty: until `varve umount {0}`, the mount hides "
                        "the files there. If a program wrote them while nothing was mounted, "
                        "they are in no version",
                        directory));
}

Result<void> check_fuse_device() {
  if (::access("/dev/fuse", R_OK | W_OK) == 0) return {};
  if (errno == ENOENT) {
    return Error(ErrorCode::kUnsupported,
                 "cannot mount, because /dev/fuse is missing: load the module with `modprobe "
                 "fuse`, or start the container with --device /dev/fuse. Without it, use `varve "
                 "store` and `varve restore`");
  }
  return base::system_error("/dev/fuse", errno);
}

Error no_thread(const std::system_error& error) {
  return {ErrorCode::kIo,
          fmt::format("cannot start a thread ({}): raise the limit of processes (ulimit -u, "
                      "TasksMax= of a unit)",
                      error.what())};
}

/// A folder whose object store has another writer.
struct FencedFolder {
  ReplicationInfo info;
  std::vector<VersionId> kept;  // Versions missing from the object store.
};

/// Returns nullopt unless the folder is fenced. No part of the process may have the folder open.
Result<std::optional<FencedFolder>> find_fence(const std::string& repository, bool trusted) {
  VARVE_TRY_ASSIGN(auto info, RemoteFolder(repository, trusted).info());
  if (!info || info->reads_only || info->fenced.empty()) return std::optional<FencedFolder>();
  VARVE_TRY_ASSIGN(auto kept, RemoteFolder(repository, trusted).unreplicated_versions());
  return std::optional(FencedFolder{*std::move(info), std::move(kept)});
}

void tell_fence(Repository& repository, const FencedFolder& fence) {
  std::string names;
  const auto all = repository.series();
  for (const auto& series : all ? *all : std::vector<SeriesInfo>()) {
    const auto versions = repository.versions(series.id);
    for (const auto& version : versions ? *versions : std::vector<VersionInfo>()) {
      const bool is_kept = std::ranges::any_of(fence.kept, [&](const VersionId& one) {
        return one.series == series.id && one.number == version.number;
      });
      if (is_kept) names += (names.empty() ? "" : ", ") + series.name + "/" + version.name;
    }
  }
  base::log(base::LogLevel::kWarning,
            fmt::format("{}. It is mounted read-only, as by -o ro.{} {}", fence.info.fenced,
                        names.empty() ? std::string()
                                      : " Only this folder has: " + names +
                                            ". `varve copy` brings them into another repository.",
                        how_to_write_again(fence.info.place)));
}

/// Runs the daemon. LMDB and threads do not survive a fork, so the repository is opened here and
/// not in the calling process.
Result<void> open_and_serve(const std::string& repository_path, const std::string& directory,
                            MountOptions options, const std::function<void()>& ready) try {
  base::raise_file_limit();  // Each version being written has files open.
  block_ending_signals();
  auto& how = options.open;
  how.trust_owner = how.trust_owner || base::is_listed_path("VARVE_TRUST", repository_path);
  std::optional<FencedFolder> fence;
  if (!how.read_only) {
    // Repository::open() reports faults of the repository.
    if (auto found = find_fence(repository_path, how.trust_owner)) fence = *std::move(found);
    how.read_only = fence.has_value();
  }
  // A signal while the closing waits for an object store ends the wait: `varve umount --no-wait`.
  how.store.waiting = [](const StoreWait& /*wait*/) { return !ending_signal_waits(); };
  VARVE_TRY_ASSIGN(const auto repository, control::open_when_unlocked(repository_path, {}, [&] {
                     return Repository::open(repository_path, how);
                   }));
  if (fence) tell_fence(*repository, *fence);
  return serve_mount(*repository, directory, options, ready);
} catch (const std::system_error& error) {
  return no_thread(error);
}

/// Reads the key of an encrypted repository into the options. Runs in the calling process, which
/// has the terminal for a passphrase and the current directory for relative names. The source gives
/// the key once, so that the daemon keeps no passphrase. `attached` is the key source that attached
/// the folder and knows the key; empty if the folder was not attached now.
Result<void> read_key_once(const std::string& repository, MountOptions& options,
                           const KeySource& attached) {
  const auto place = options.key.empty() ? control::key_place_of_environment() : options.key;
  options.open.encrypted_only = !place.empty();
  const bool trusted = options.open.trust_owner || base::is_listed_path("VARVE_TRUST", repository);
  const auto encryption = read_encryption(repository, trusted);
  // Repository::open() reports faults of the repository.
  if (!encryption || !*encryption) return {};
  options.open.encrypted_only = true;
  VARVE_TRY_ASSIGN(auto key, attached
                                 ? attached()
                                 : control::read_key(place, {repository, repository, trusted}));
  const auto held = std::make_shared<UserKey>(std::move(key));
  options.open.key = [held]() -> Result<UserKey> { return std::exchange(*held, {}); };
  return {};
}

/// Returns the options to attach a folder to an object store, with the key of the mount.
OpenOptions options_to_attach(const std::string& folder, const MountOptions& options) {
  const auto place = options.key.empty() ? control::key_place_of_environment() : options.key;
  OpenOptions how;
  how.read_only = true;
  how.trust_owner = options.open.trust_owner;
  how.key = control::key_source(place, {folder, folder, how.trust_owner});
  how.encrypted_only = !place.empty();
  how.accept_older = options.open.accept_older;
  control::use_client_state(how);
  return how;
}

}  // namespace

Result<void> mount(const std::string& repository, const std::string& directory,
                   const MountOptions& chosen) {
  MountOptions options = chosen;
  VARVE_TRY(check_mount_options(options));
  const auto purpose = options.open.read_only ? control::Purpose::kLook : control::Purpose::kChange;
  KeySource attached;
  VARVE_TRY_ASSIGN(const std::string folder,
                   control::folder_of_place(
                       repository, {.purpose = purpose, .options = [&](const std::string& cached) {
                                      auto how = options_to_attach(cached, options);
                                      // The user is asked once for the folder and the mount.
                                      if (!attached) attached = how.key;
                                      how.key = attached;
                                      return how;
                                    }}));
  // mount(8) compares the place named in fstab with the mount table.
  if (folder != repository && options.source.empty()) options.source = repository;
  // The daemon changes its current directory, and the mount table shows the path to all users.
  auto repository_path = absolute_path(folder);
  if (!repository_path) {
    return Error(ErrorCode::kNoRepository, fmt::format("{}; `varve init` creates a repository",
                                                       repository_path.error().message()));
  }
  VARVE_TRY_ASSIGN(const std::string mount_point, check_mount_point(directory));
  // The mount would hide the repository, or files of the repository, from every other process.
  if (lies_below(*repository_path, mount_point)) {
    return Error(ErrorCode::kInvalid,
                 fmt::format("mount point {} is the repository or a folder above it, so the mount "
                             "would hide the repository; choose another mount point",
                             mount_point));
  }
  VARVE_TRY(check_outside_repositories(mount_point, PlaceKind::kRepository, {*repository_path},
                                       "choose a mount point outside the repository"));
  VARVE_TRY(check_fuse_device());
  warn_of_hidden_files(mount_point);
  VARVE_TRY(read_key_once(*repository_path, options, std::exchange(attached, nullptr)));
  control::use_client_state(options.open);
  if (options.debug) base::set_log_level(base::LogLevel::kDebug);
  if (options.foreground || options.debug) {
    return open_and_serve(*repository_path, mount_point, options, notify_ready);
  }
  return run_as_daemon([&](const std::function<void()>& ready) {
    return open_and_serve(*repository_path, mount_point, options, ready);
  });
}

int mount_main(int argc, char** argv) {
  const std::string program =
      argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "mount.fuse.varve";
  const auto fail = [&program](const Error& error) {
    std::fputs(fmt::format("{}: {}\n", program, error.message()).c_str(), stderr);
    if (error.code() == ErrorCode::kNoRepository) return kExitNoRepository;
    if (error.code() == ErrorCode::kWrongKey) return kExitWrongKey;
    return error.code() == ErrorCode::kLocked ? kExitLocked : kExitError;
  };
  bool sloppy = false;
  bool fake = false;
  std::string lists;
  int option = 0;
  // mount(8) puts the options after the names; getopt(3) of glibc permutes the arguments.
  while ((option = ::getopt(argc, argv, "sfnvN:t:o:h")) != -1) {
    switch (option) {
      case 's':
        sloppy = true;
        break;
      case 'f':
        fake = true;
        break;
      case 'o':
        lists += lists.empty() ? "" : ",";
        lists += optarg;
        break;
      case 'n':
      case 'v':
      case 'N':
      case 't':
        break;
      default:
        std::fputs(
            fmt::format("usage: {} REPO DIR [-sfnv] [-o OPTIONS]\nSee mount.varve(8).\n", program)
                .c_str(),
            stderr);
        return option == 'h' ? 0 : kExitError;
    }
  }
  if (argc - optind != 2) {
    return fail(
        {ErrorCode::kInvalid, "the repository or the mount point is missing; see mount.varve(8)"});
  }
  if (asks_for_remount(lists)) {
    if (fake) return 0;
    const auto directory = absolute_path(argv[optind + 1]);
    const auto done = directory ? remount(*directory, lists) : Result<void>(directory.error());
    return done ? 0 : fail(done.error());
  }
  MountOptions options;
  if (const auto parsed = parse_mount_options(lists, sloppy, options); !parsed) {
    return fail(parsed.error());
  }
  if (fake) return 0;
  const auto mounted = mount(argv[optind], argv[optind + 1], options);
  return mounted ? 0 : fail(mounted.error());
}

}  // namespace varve::fs
