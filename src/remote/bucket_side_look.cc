// SPDX-License-Identifier: Apache-2.0
// Asks for the newest head while the folder is opened in its present state. docs/decisions/115.
#include <utility>

#include "base/thread_pool.h"
#include "format/superblock.h"
#include "remote/attachment.h"
#include "remote/bucket_side.h"
#include "remote/head.h"
#include "remote/store_probe.h"
#include "store/superblock_text.h"

namespace varve::remote {

Result<bool> BucketSide::begin_look() {
  if (!config_.reads_only) return false;
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(*files_, path_));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
  VARVE_TRY_ASSIGN(const auto state, find_state(*files_, path_));
  if (!state) return false;
  VARVE_TRY_ASSIGN(const auto known, state->head());
  if (!known) return false;
  look_repository_ = superblock.repository_id;
  look_known_ = *known;
  lazy_->assume_reached();
  look_thread_ = std::jthread([this] {
    base::name_this_thread("varve-look");
    CommitLog log(*bucket_, look_repository_);
    look_newest_ = newest_head(log, look_known_);
  });
  return true;
}

Result<std::optional<BucketSide::NewerHead>> BucketSide::end_look(const crypto::KeyRing* keys) {
  look_thread_.join();
  const auto& newest = *look_newest_;
  if (!newest) {
    auto error = explain_lack(*bucket_, path_, newest.error(), look_repository_);
    if (is_out_of_reach(error)) return std::optional<NewerHead>();
    return error;
  }
  VARVE_TRY(authenticate_head(*newest, keys));
  if (*newest == look_known_) return std::optional<NewerHead>();
  return std::optional(NewerHead{look_known_, *newest});
}

}  // namespace varve::remote
