// SPDX-License-Identifier: Apache-2.0
#include "remote/reading_folder.h"

#include <optional>
#include <string>
#include <utility>

#include "format/superblock.h"
#include "remote/attachment.h"
#include "remote/commit_log.h"
#include "remote/distant_store.h"
#include "remote/head.h"
#include "remote/lease.h"
#include "remote/readable_head.h"
#include "remote/rebuild.h"
#include "remote/store_errors.h"
#include "remote/store_probe.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"

namespace varve::remote {

Result<std::unique_ptr<ReadingFolder>> ReadingFolder::open(FolderToOpen folder,
                                                           const crypto::KeyRing* keys,
                                                           HeadLearning& learning) {
  std::unique_ptr<ReadingFolder> opened(new ReadingFolder(std::move(folder)));
  if (learning.in_parallel) {
    VARVE_TRY_ASSIGN(learning.request, opened->ask());
    opened->request_ = learning.request;
    if (learning.request) return opened;
  }
  const auto done = opened->refresh(keys, learning.newer);
  if (!done && !is_out_of_reach(done.error())) return done.error();
  return opened;
}

Result<std::shared_ptr<HeadRequest>> ReadingFolder::ask() {
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(files(), path()));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
  VARVE_TRY_ASSIGN(const auto state, find_state(files(), path()));
  if (!state) return std::shared_ptr<HeadRequest>();
  VARVE_TRY_ASSIGN(const auto known, state->head());
  if (!known) return std::shared_ptr<HeadRequest>();
  assume_reached();
  return std::make_shared<HeadRequest>(HeadQuestion{.bucket = &bucket(),
                                                    .root = path(),
                                                    .repository_id = superblock.repository_id,
                                                    .known = *known});
}

Result<void> ReadingFolder::refresh(const crypto::KeyRing* keys,
                                    const std::optional<NewerHead>& newer) {
  if (newer) assume_reached();
  const auto lock = files().lock(store::RepositoryPaths(path()).lock());
  if (!lock) return {};  // Another process refreshes, or the folder is on a read-only disk.
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(files(), path()));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
  std::string known;
  {
    VARVE_TRY_ASSIGN(const auto state, ReplicaState::open(files(), path(), true));
    VARVE_TRY_ASSIGN(const bool rebuilt, is_rebuilt_state(state));
    if (rebuilt) return {};  // No head continues the rebuilt state.
    VARVE_TRY_ASSIGN(const auto present, state.head());
    known = present.value_or("");
  }
  CommitLog log(bucket(), superblock.repository_id);
  // Another process may have brought the folder to a newer head since the request.
  const auto found = newer && newer->known == known ? Result<std::string>(newer->newest)
                                                    : readable_text(log, known);
  if (!found) return explain_lack(bucket(), path(), found.error(), superblock.repository_id);
  const auto& newest = *found;
  VARVE_TRY(authenticate_head(newest, keys));
  VARVE_TRY_ASSIGN(const bool advanced, advance_to(bucket(), files(), path(), newest));
  if (!advanced) return {};
  VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files(), path(), false));
  static_cast<void>(keep_lease(bucket(), superblock.repository_id, state));
  return {};
}

store::StoreOpener ReadingFolder::opener() {
  return [this](io::FileSystem& from, const std::string& directory) {
    return make_distant_store(from, data(), path(), directory);
  };
}

Result<bool> ReadingFolder::follow(const meta::Env& catalog,
                                   std::shared_ptr<const crypto::KeyRing> keys,
                                   std::chrono::milliseconds interval,
                                   std::function<void()> changed) {
  if (follower_) return false;
  VARVE_TRY_ASSIGN(auto opened, ReplicaState::open(files(), path(), false));
  followed_ = std::make_unique<ReplicaState>(std::move(opened));
  state().share(*followed_);
  FollowedFolder folder;
  folder.root = path();
  folder.files = &files();
  folder.bucket = &bucket();
  folder.data = &data();
  folder.state = followed_.get();
  folder.catalog = &catalog;
  folder.keys = std::move(keys);
  folder.changed = std::move(changed);
  follower_ = std::make_unique<HeadFollower>(std::move(folder), interval);
  return true;
}

ReadingFolder::~ReadingFolder() {
  end();
  state().release();
}

void ReadingFolder::end() {
  if (request_) request_->stop();
  if (follower_) {
    bucket().stop();
    follower_.reset();
  }
  note_traffic();
}

}  // namespace varve::remote
