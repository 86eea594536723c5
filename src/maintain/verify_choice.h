// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "format/container_record.h"
#include "maintain/parallel_verifier.h"
#include "varve/check.h"

namespace varve::maintain {

/// Chooses how much of each container a check reads: by the options, and at random for
/// CheckOptions::percent. Thread-safe.
class VerifyChoice {
 public:
  /// The same `seed` chooses the same containers. Lifetime: `options` outlives the object.
  VerifyChoice(const CheckOptions& options, std::uint64_t seed) : options_(options), seed_(seed) {}

  [[nodiscard]] VerifyJob job_of(SeriesId owner, const format::ContainerRecord& record) const;

 private:
  const CheckOptions& options_;
  const std::uint64_t seed_;
};

}  // namespace varve::maintain
