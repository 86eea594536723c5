// SPDX-License-Identifier: Apache-2.0
#include "control/lock_wait.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/path_list.h"
#include "control/client.h"
#include "control/identity.h"
#include "control/lock_holder.h"
#include "varve/remote_folder.h"
#include "varve/replication.h"

namespace varve::control {
namespace {

std::string wait_text(std::chrono::seconds wait) {
  const auto seconds = wait.count();
  return seconds % 60 == 0 ? fmt::format("{} min", seconds / 60) : fmt::format("{} s", seconds);
}

/// Returns whether the command can do its work through the daemon. See check_same_view().
bool serves(const Client& daemon, const LockWait& wait) {
  const std::uint64_t mounts = daemon.identity().mount_namespace;
  const bool shares_mounts = mounts == 0 || mounts == own_mount_namespace();
  const bool is_own = daemon.user() == ::geteuid();
  if (wait.reads_files && !(shares_mounts && (is_own || daemon.user() == 0))) return false;
  return !wait.reads_catalog || is_own;
}

bool is_fence(const std::string& repository) {
  const auto info =
      RemoteFolder(repository, base::is_listed_path("VARVE_TRUST", repository)).info();
  return info && *info && !(*info)->fenced.empty();
}

LockHolder find_holder(const std::string& repository, const LockWait& wait) {
  if (is_fence(repository)) return LockHolder::kFence;
  const auto client = Client::connect(repository);
  if (client) {
    if (client->identity().mount_device == 0) return LockHolder::kPassing;
    return serves(*client, wait) ? LockHolder::kServing : LockHolder::kRefusing;
  }
  switch (client.error().code()) {
    case ErrorCode::kNotFound:
    case ErrorCode::kIo:  // The daemon ended during the request.
      return LockHolder::kPassing;
    case ErrorCode::kNotPermitted:
      return LockHolder::kRefusing;
    default:
      return LockHolder::kServing;
  }
}

/// Waits for `time`. Returns false once `stop` is readable.
bool pause_unless(int stop, std::chrono::milliseconds time) {
  pollfd stopped = {.fd = stop, .events = POLLIN, .revents = 0};
  return ::poll(&stopped, 1, static_cast<int>(time.count())) <= 0;
}

}  // namespace

LockScene lock_scene(const std::string& repository, const LockWait& wait) {
  LockScene scene;
  scene.holder = [repository, wait] { return find_holder(repository, wait); };
  scene.process = [repository] { return holder_of_lock(repository + "/lock"); };
  scene.now = [] { return std::chrono::steady_clock::now(); };
  scene.pause = [stop = wait.stop, begin = wait.begin,
                 held = std::shared_ptr<const void>()](std::chrono::milliseconds time) mutable {
    if (begin && !held) held = begin();
    return pause_unless(stop, time);
  };
  scene.tell = [](const std::string& line) { base::log(base::LogLevel::kWarning, line); };
  return scene;
}

LockWaiting::LockWaiting(std::string repository, const LockWait& wait, LockScene scene)
    : repository_(std::move(repository)),
      wait_(wait),
      scene_(std::move(scene)),
      start_(scene_.now()) {}

Result<bool> LockWaiting::goes_on() {
  const Time now = scene_.now();
  const auto waited = now - start_;
  if (waited >= wait_.most) return false;
  const LockHolder found = holder(now);
  if (found == LockHolder::kServing || found == LockHolder::kFence) return false;
  if (found == LockHolder::kRefusing && !wait_.for_mounts) return false;
  if (waited >= kQuietWait && !std::exchange(is_announced_, true)) {
    scene_.tell(announcement(found));
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(wait_.most - waited);
  if (!scene_.pause(std::min(pause_, left))) {
    return Error(ErrorCode::kInterrupted,
                 "interrupted while another process used " + repository_ + "; nothing was changed");
  }
  pause_ = std::min(pause_ * 3 / 2, kPauseMax);
  return true;
}

LockHolder LockWaiting::holder(Time now) {
  if (refused_at_ && now - *refused_at_ < kAskAgain) return LockHolder::kRefusing;
  const LockHolder found = scene_.holder();
  refused_at_ = found == LockHolder::kRefusing ? std::optional(now) : std::nullopt;
  return found;
}

std::string LockWaiting::announcement(LockHolder holder) const {
  const bool is_mount = holder == LockHolder::kRefusing;
  const std::string visible = scene_.process();
  const std::string process = visible.empty() ? "a process that is not visible here, as of "
                                                "another container or machine"
                                              : visible;
  return fmt::format(
      "{} is {} {}; waiting for the end of {} for at most {} (--lock-wait). {}Ctrl-C ends the wait",
      repository_, is_mount ? "mounted by" : "in use by", process,
      is_mount ? "the mount" : "that process", wait_text(wait_.most),
      is_mount ? "The daemon runs as another user or sees other mounts, so it cannot do this "
                 "command's work: `varve umount` there ends the mount. "
               : "");
}

}  // namespace varve::control
