// SPDX-License-Identifier: Apache-2.0
// Verifies many containers with several threads, at the speed of the disk or a slower one.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "format/data_codecs.h"
#include "maintain/container_verifier.h"
#include "store/segment_files.h"
#include "varve/types.h"

namespace varve::maintain {

struct VerifyJob {
  format::ContainerRecord record;
  VerifyLevel level = VerifyLevel::kHeader;
};

struct VerifyPace {
  unsigned threads = 0;                ///< Number of threads; 0 for two per processor, at most 16.
  std::uint64_t bytes_per_second = 0;  ///< Rate limit; 0 for none.
  std::stop_token stop;
  /// True if the containers are in an object store and are requested in advance. May stay false if
  /// the reader itself knows about the object store.
  bool is_distant = false;
};

/// Verifies containers on several threads. Calls `handle` on the calling thread, in the order of
/// the jobs. Returns false if stopped before the last job. Requests containers from a distant store
/// in advance. Memory: up to 4 MiB per thread, and a few waiting verdicts; in a distant store's
/// reader, up to the limits of the reader.
[[nodiscard]] bool verify_containers(
    const format::DataCodecs& codecs, store::SegmentReader& reader, StoreId store_id,
    const std::vector<VerifyJob>& jobs, const VerifyPace& pace,
    const std::function<void(const VerifyJob& job, ContainerVerdict&& verdict)>& handle);

}  // namespace varve::maintain
