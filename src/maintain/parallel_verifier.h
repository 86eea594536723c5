// SPDX-License-Identifier: Apache-2.0
// Verifies many containers with several threads, at the speed of the disk or a slower one.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "maintain/container_verifier.h"
#include "store/segment_files.h"
#include "varve/types.h"

namespace varve::maintain {

struct VerifyJob {
  store::ContainerRecord record;
  VerifyLevel level = VerifyLevel::kHeader;
};

struct VerifyPace {
  unsigned threads = 0;                ///< 0: two a processor, at most 16.
  std::uint64_t bytes_per_second = 0;  ///< 0: no bound.
  std::stop_token stop;
};

/// Calls `handle` from the calling thread, in the order of the jobs. Each thread takes up to 4 MiB
/// of memory; verdicts wait for their turn, a few a thread. True if all jobs were done, false if
/// it was stopped.
[[nodiscard]] bool verify_containers(
    store::SegmentReader& reader, SeriesId series, const std::vector<VerifyJob>& jobs,
    const VerifyPace& pace,
    const std::function<void(const VerifyJob& job, ContainerVerdict&& verdict)>& handle);

}  // namespace varve::maintain
