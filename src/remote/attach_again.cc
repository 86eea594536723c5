// SPDX-License-Identifier: Apache-2.0
#include "remote/attach_again.h"

#include <cstdint>
#include <optional>

#include "bucket/location.h"
#include "format/superblock.h"
#include "remote/head.h"
#include "remote/replica_state.h"
#include "store/repository_paths.h"
#include "store/superblock_text.h"
#include "varve/replication.h"

namespace varve::remote {

namespace {

Error exists(const std::string& folder, const std::string& more) {
  return {ErrorCode::kExists, folder + " is a Varve repository already" + more};
}

// Fails if another folder created the newest head. The folder's own newest head may be younger than
// `newest`, because `newest` was read earlier.
Result<void> check_writes(io::FileSystem& files, const std::string& folder,
                          const std::string& place, const std::string& newest,
                          std::uint64_t number) {
  VARVE_TRY_ASSIGN(const auto state, find_state(files, folder));
  if (!state) return exists(folder, ", whose folder replica is missing");
  VARVE_TRY_ASSIGN(const auto fenced, state->fenced());
  if (fenced) {
    return Error(ErrorCode::kLocked, *fenced + ". " + how_to_write_again(place));
  }
  VARVE_TRY_ASSIGN(const auto known, state->head());
  VARVE_TRY_ASSIGN(const auto pending, state->pending());
  if (known == newest || pending == newest) return {};
  std::uint64_t known_number = 0;
  if (known) {
    VARVE_TRY_ASSIGN(const auto head, decode_head(*known));
    known_number = head.number;
  }
  if (known_number > number) return {};
  return Error(ErrorCode::kLocked, folder + " wrote to " + place +
                                       ", and another folder has taken over, or this one was put "
                                       "back to an older state. " +
                                       how_to_write_again(place));
}

}  // namespace

Result<void> forget_unfinished_attach(io::FileSystem& files, const std::string& folder) {
  const auto removed = files.remove(folder + "/" + kUnfinishedAttach);
  if (!removed && removed.error().code() == ErrorCode::kNotFound) return {};
  if (!removed) return removed;
  return files.sync_directory(folder);
}

Result<void> attach_again(bucket::Bucket& bucket, io::FileSystem& files, const std::string& folder,
                          const BucketConfig& wanted, const std::string& newest) {
  VARVE_TRY_ASSIGN(const auto config, read_config(files, folder));
  if (!config) return exists(folder, "");
  VARVE_TRY_ASSIGN(const auto text, store::read_superblock_text(files, folder));
  VARVE_TRY_ASSIGN(const auto superblock, format::decode_superblock(text));
  VARVE_TRY_ASSIGN(const auto head, decode_head(newest));
  VARVE_TRY_ASSIGN(const auto present_place, bucket::parse_location(config->place));
  VARVE_TRY_ASSIGN(const auto wanted_place, bucket::parse_location(wanted.place));
  if (superblock.repository_id != head.repository_id || present_place != wanted_place) {
    return exists(folder, ", in " + config->place);
  }
  if (config->reads_only != wanted.reads_only) {
    return exists(
        folder, (config->reads_only ? ", which only reads " : ", and writes to ") + config->place);
  }
  if (!config->reads_only) {
    VARVE_TRY(check_writes(files, folder, config->place, newest, head.number));
  }
  VARVE_TRY_ASSIGN(const bool unfinished, files.exists(folder + "/" + kUnfinishedAttach));
  if (!unfinished) return {};
  const auto lock = files.lock(store::RepositoryPaths(folder).lock());
  if (!lock) return {};  // A process uses the folder; the file does not disturb the process.
  VARVE_TRY(forget_unfinished_attach(files, folder));
  VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files, folder, false));
  return state.add_traffic(bucket.traffic());
}

}  // namespace varve::remote
