// SPDX-License-Identifier: Apache-2.0
#include "remote/follow_once.h"

#include <memory>
#include <optional>

#include "format/superblock.h"
#include "remote/attachment.h"
#include "remote/catalog_reads.h"
#include "remote/commit_log.h"
#include "remote/head.h"
#include "remote/readable_head.h"
#include "remote/replica_state.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"

namespace varve::remote {

Result<Followed> follow_newest(bucket::Bucket& bucket, io::FileSystem& files,
                               const std::string& folder, const OpenOptions& options) {
  const auto lock = files.lock(store::RepositoryPaths(folder).lock());
  if (!lock) return Followed::kElsewhere;
  std::optional<std::string> known;
  {
    VARVE_TRY_ASSIGN(const auto state, find_state(files, folder));
    if (state) {
      VARVE_TRY_ASSIGN(known, state->head());
    }
  }
  if (!known) return Followed::kNewest;  // No head continues a rebuilt state.
  VARVE_TRY_ASSIGN(const auto head, decode_head(*known));
  CommitLog log(bucket, head.repository_id);
  const auto found = readable_head(log, *known);
  if (!found) return is_loss(found.error()) ? Result(Followed::kNewest) : found.error();
  if (found->text == *known) {
    VARVE_TRY(adopt_superblock(files, folder, head));
    return Followed::kNewest;
  }
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(files, folder));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
  VARVE_TRY_ASSIGN(const auto keys, format::unlock_superblock(superblock, text, options.key,
                                                              options.encrypted_only));
  VARVE_TRY(authenticate_head(found->text, keys.get()));
  VARVE_TRY(advance_to(bucket, files, folder, found->text));
  return Followed::kNewest;
}

}  // namespace varve::remote
