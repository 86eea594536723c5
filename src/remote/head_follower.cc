// SPDX-License-Identifier: Apache-2.0
#include "remote/head_follower.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "base/coding.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "remote/attachment.h"
#include "remote/bucket_config.h"
#include "remote/head.h"
#include "remote/head_objects.h"
#include "remote/lease.h"
#include "remote/readable_head.h"
#include "store/repository_paths.h"

namespace varve::remote {

namespace {

// A look at the next head costs the cheapest request. If the next head is gone, a list finds later
// heads.
constexpr unsigned kLooksPerList = 60;

}  // namespace

HeadFollower::HeadFollower(FollowedFolder folder, std::chrono::milliseconds interval)
    : folder_(std::move(folder)), interval_(interval) {
  thread_ = std::jthread([this](const std::stop_token& stop) {
    base::name_this_thread("varve-follow");
    run(stop);
  });
}

HeadFollower::~HeadFollower() {
  thread_.request_stop();
  thread_.join();
}

void HeadFollower::run(const std::stop_token& stop) {
  tell_change();
  bool is_failing = false;  // And the reason was logged.
  for (unsigned looks = 1;; ++looks) {
    {
      std::unique_lock lock(mutex_);
      static_cast<void>(wake_.wait_for(lock, stop, interval_, [] { return false; }));
    }
    if (stop.stop_requested()) return;
    const auto looked = look(looks % kLooksPerList == 0);
    tell_change();
    if (stop.stop_requested()) return;
    if (looked && !*looked) return;
    if (!looked && !is_failing) {
      base::log(base::LogLevel::kWarning,
                looked.error().message() + "; older versions are shown until it works again");
    }
    is_failing = !looked;
  }
}

// Another process may have brought the folder up to date, so the state tells.
void HeadFollower::tell_change() {
  if (!folder_.changed) return;
  auto now = folder_.state->head();
  if (!now || !*now || **now == shown_) return;
  shown_ = **std::move(now);
  folder_.changed();
}

Result<bool> HeadFollower::look(bool lists) {
  VARVE_TRY_ASSIGN(const auto config, read_config(*folder_.files, folder_.root));
  if (!config || !config->reads_only) return false;
  VARVE_TRY_ASSIGN(const auto known_text, folder_.state->head());
  if (!known_text) return true;
  VARVE_TRY_ASSIGN(const auto known, decode_head(*known_text));
  CommitLog log(*folder_.bucket, known.repository_id);
  if (!lists) {
    const auto next = read_head(log, known.number + 1);
    if (!next && next.error().code() == ErrorCode::kNotFound) return true;
    if (!next) return next.error();
  }
  // Another process may bring the folder up to date meanwhile; the next look sees the result.
  const auto lock = folder_.files->lock(store::RepositoryPaths(folder_.root).lock());
  if (!lock && lock.error().code() == ErrorCode::kLocked) return true;
  if (!lock) return lock.error();
  VARVE_TRY_ASSIGN(const auto newest, readable_text(log, *known_text));
  VARVE_TRY(authenticate_head(newest, folder_.keys.get()));
  AttachedFolder attached;
  attached.files = folder_.files;
  attached.root = folder_.root;
  attached.state = folder_.state;
  attached.catalog = folder_.catalog;
  attached.objects_added = [this] { return folder_.data->reload(); };
  VARVE_TRY_ASSIGN(const bool advanced, advance(*folder_.bucket, attached, newest));
  if (!advanced) return true;
  VARVE_TRY(folder_.data->reload());
  static_cast<void>(keep_lease(*folder_.bucket, known.repository_id, *folder_.state));
  VARVE_TRY_ASSIGN(const auto head, decode_head(newest));
  base::log(base::LogLevel::kInfo,
            fmt::format("{} shows head {} of {}", folder_.root, head.number, config->place));
  return true;
}

}  // namespace varve::remote
