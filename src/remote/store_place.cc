// SPDX-License-Identifier: Apache-2.0
#include "remote/store_place.h"

#include <fmt/core.h>

#include "base/coding.h"
#include "remote/head.h"
#include "remote/replica_state.h"
#include "remote/store_probe.h"

namespace varve::remote {

BucketConfig config_of(const StorePlace& place, bool reads_only) {
  BucketConfig config;
  config.place = place.place;
  config.endpoint = place.endpoint;
  config.region = place.region;
  if (!reads_only) config.volume_class = place.volume_class;
  config.cache_bytes = place.cache_bytes;
  config.staging_bytes = place.staging_bytes;
  config.reads_only = reads_only;
  return config;
}

Error damaged_superblock(const bucket::Bucket& bucket) {
  return {ErrorCode::kCorrupt,
          fmt::format("{}/{} is damaged; `varve repair` in the folder that writes, on the machine "
                      "that has it, puts it back",
                      bucket.describe(), kSuperblockName)};
}

Result<std::optional<std::string>> superblock_in(bucket::Bucket& bucket) {
  const auto bytes = bucket.get_all(kSuperblockName, format::kSuperblockBytesMax);
  if (bytes) return std::optional(std::string(base::as_text(*bytes)));
  if (bytes.error().code() == ErrorCode::kNotFound) return std::optional<std::string>();
  if (bytes.error().code() == ErrorCode::kCorrupt) return damaged_superblock(bucket);
  return bytes.error();
}

Result<void> note_first_use(const bucket::Bucket& bucket, io::FileSystem& files,
                            const std::string& folder, const bucket::ProbeRecord& probed) {
  VARVE_TRY_ASSIGN(auto state, ReplicaState::open(files, folder, false));
  if (probed.seconds != 0) VARVE_TRY(set_probe_record(state, probed));
  warn_of_unsafe_conditions(bucket, state);
  return state.add_traffic(bucket.traffic());
}

}  // namespace varve::remote
