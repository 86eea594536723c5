// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/repository_access.h"
#include "control/place_folder.h"
#include "control/unmount.h"
#include "varve/remote_folder.h"
#include "varve/replication.h"

namespace varve::cli {
namespace {

struct UmountArguments {
  std::string directory;
  bool force = false;
  bool no_wait = false;
};

/// Returns a description of the file system's other mount.
std::string text_of_holder(const control::LongWait& wait) {
  const auto& holder = *wait.holder;
  const std::string end =
      fmt::format("the daemon (process {}) goes on until that ends. Ctrl-C ends this command only",
                  wait.process);
  if (holder.process == 0) {
    return fmt::format("unmounted, but the repository is still mounted at {}: {}",
                       holder.mount_point, end);
  }
  return fmt::format(
      "unmounted, but process {} ({}) has a mount namespace of its own, in which the repository "
      "is still mounted at {}: {}",
      holder.process, holder.name, holder.mount_point, end);
}

/// Prints the reasons for the wait of an unmount, each reason once.
class Explainer {
 public:
  Explainer(const Context& context, bool waits_for_store)
      : context_(context), waits_for_store_(waits_for_store) {}

  void explain(const control::LongWait& wait) {
    const auto& repository = wait.repository;
    const auto process = wait.process;
    if (!wait.is_unmounted) {
      return tell("durable",
                  fmt::format("not unmounted yet: the daemon (process {}) makes open versions "
                              "durable first. Ctrl-C leaves the repository mounted; --force "
                              "unmounts without that",
                              process));
    }
    if (wait.holder) {
      return tell(fmt::format("{} {}", wait.holder->process, wait.holder->mount_point),
                  text_of_holder(wait));
    }
    const bool trusted = is_trusted(repository);
    const auto info = waits_for_store_ ? RemoteFolder(repository, trusted).info()
                                       : Result<std::optional<ReplicationInfo>>(std::nullopt);
    if (!info || !*info || (*info)->reads_only) {
      return tell("disk", fmt::format("unmounted; the daemon (process {}) has not ended yet: it "
                                      "writes what is not on disk, or another process still uses "
                                      "the mount. Ctrl-C ends this command only",
                                      process));
    }
    const auto missing = RemoteFolder(repository, trusted).unreplicated_versions();
    const auto count = missing && !missing->empty()
                           ? fmt::format(" ({} missing there)", count_of(missing->size()))
                           : "";
    tell(
        "store",
        fmt::format("unmounted; the daemon (process {}) waits until {} has what is sealed in {}{}. "
                    "Ctrl-C ends this command only. `kill {}`, or --no-wait the next time, ends "
                    "the wait, and loses nothing: `varve wait {}` goes on",
                    process, (*info)->place, repository, count, process, repository));
  }

 private:
  static std::string count_of(std::size_t versions) {
    return versions == 1 ? "1 version is" : fmt::format("{} versions are", versions);
  }
  void tell(const std::string& reason, const std::string& text) {
    if (told_.insert(reason).second) note(context_, text);
  }

  const Context& context_;
  const bool waits_for_store_;
  std::set<std::string> told_;
};

/// Fails if the object store lacks a sealed version of the repository. The daemon has ended.
Result<void> check_replicated(const std::string& repository) {
  const bool trusted = is_trusted(repository);
  const auto folder = RemoteFolder(repository, trusted).info();
  // In case of an error, perhaps only the ended mount trusted the folder.
  if (!folder || !*folder || (*folder)->reads_only) return {};
  const auto& info = *folder;
  VARVE_TRY_ASSIGN(const auto missing, RemoteFolder(repository, trusted).unreplicated_versions());
  if (missing.empty()) return {};
  const auto lost_nothing = fmt::format(
      "unmounted, but {} {} not in {}; what is sealed in {} is safe there", missing.size(),
      missing.size() == 1 ? "version is" : "versions are", info->place, repository);
  if (!info->fenced.empty()) {
    return Error(ErrorCode::kLocked, info->fenced +
                                         ". `varve copy` brings the versions into "
                                         "another repository. " +
                                         how_to_write_again(info->place))
        .with_context(lost_nothing);
  }
  return Error(ErrorCode::kUnavailable,
               fmt::format("{}. `varve wait {}` tries again, and says what prevents it; `varve "
                           "status {}` lists them",
                           lost_nothing, repository, repository));
}

int run_umount(UmountArguments options, const Context& context) {
  if (options.directory.empty()) options.directory = context.instance.value("VARVE_MOUNT");
  if (options.directory.empty()) {
    return fail(usage_error("DIR is missing; give the mount point, or the mounted repository"));
  }
  auto directory = control::known_folder_of_place(options.directory);
  if (!directory) return fail(directory.error());
  control::UnmountChoices choices;
  if (options.force) choices.mode = control::UnmountMode::kForce;
  choices.waits_for_store = !options.no_wait;
  Explainer explainer(context, choices.waits_for_store);
  choices.takes_long = [&](const control::LongWait& wait) { explainer.explain(wait); };
  const auto outcome = control::unmount(*directory, choices);
  if (!outcome) return fail(outcome.error());
  if (outcome->daemon_was_dead) {
    note(context, fmt::format("{}: the daemon had died; the mount point is free again. Open "
                              "versions continue from their last checkpoint",
                              outcome->mount_point));
    return kExitOk;
  }
  if (options.no_wait || outcome->repository.empty()) return kExitOk;
  const auto replicated = check_replicated(outcome->repository);
  return replicated ? kExitOk : fail(replicated.error());
}

}  // namespace

void add_umount_command(CommandLine& line, const Context& context) {
  auto options = std::make_shared<UmountArguments>();
  auto command = line.add_command(
      "umount", "Unmount a repository, and wait until its daemon has written everything");
  command.add_option("DIR", options->directory, "The mount point, or the mounted repository");
  command.add_flag("--force", options->force,
                   "Unmount even if open versions lose data that is not on disk");
  command.add_flag("--no-wait", options->no_wait,
                   "Do not wait until the object store has what is sealed");
  command.add_alias("unmount");
  command.run([options, &context] { return run_umount(*options, context); });
}

}  // namespace varve::cli
