// SPDX-License-Identifier: Apache-2.0
#include "maintain/verify_choice.h"

#include "base/checksum.h"
#include "base/coding.h"

namespace varve::maintain {

VerifyJob VerifyChoice::job_of(SeriesId owner, const format::ContainerRecord& record) const {
  const CheckPosition here{owner, static_cast<std::uint32_t>(record.segment), record.offset};
  const bool before = options_.after && here <= *options_.after;
  if (!options_.read_data || before) return {record, VerifyLevel::kHeader};
  if (options_.percent < 100) {
    const std::string name =
        base::be64(seed_) + base::be32(static_cast<std::uint32_t>(record.number));
    const auto draw = base::checksum64(base::as_bytes(name)) % 100;
    if (draw >= options_.percent) return {record, VerifyLevel::kHeader};
  }
  return {record, options_.verify_chunks ? VerifyLevel::kChunks : VerifyLevel::kFrames};
}

}  // namespace varve::maintain
