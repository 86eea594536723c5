// SPDX-License-Identifier: Apache-2.0
#include "remote/store_place.h"

#include <fmt/core.h>

#include "base/coding.h"
#include "base/log.h"
#include "remote/head.h"
#include "remote/replica_state.h"
#include "remote/store_probe.h"
#include "varve/copy_name.h"

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

Result<std::string> repository_in(bucket::Bucket& bucket, const bucket::ListPage& listed,
                                  const ReadSuperblock& read_superblock) {
  auto text = superblock_in(bucket);
  if (!text && text.error().code() != ErrorCode::kCorrupt) return std::move(text).error();
  const bool is_present = !text || text->has_value();
  if (text && *text) {
    const auto read = read_superblock(**text);
    if (read) return read->repository_id;
    if (read.error().code() != ErrorCode::kCorrupt) return read.error();
  }
  const auto lack =
      is_present ? damaged_superblock(bucket)
                 : Error(ErrorCode::kNoRepository, bucket.describe() + " has no Varve repository");
  const auto first = listed.objects.empty() ? std::string() : listed.objects.front().name;
  const auto id = first.substr(0, first.find('/'));
  if (!is_repository_id(id) || first.size() == id.size()) return lack;
  // "0" follows "/": the first object behind those of the repository.
  VARVE_TRY_ASSIGN(const auto next, bucket.list({}, id + "0", 1));
  const auto other = next.objects.empty() ? std::string() : next.objects.front().name;
  if (other.size() > id.size() && other[id.size()] == '/') return lack;
  base::log(base::LogLevel::kWarning,
            fmt::format("{}/{} is lost or damaged; the other objects are of the repository {}. "
                        "`varve repair` in the folder that writes puts the object back",
                        bucket.describe(), kSuperblockName, id));
  return id;
}

}  // namespace varve::remote
