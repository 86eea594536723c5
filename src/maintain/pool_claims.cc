// SPDX-License-Identifier: Apache-2.0
#include "maintain/pool_claims.h"

#include <algorithm>
#include <cstdint>

#include "catalog/pool_records.h"

namespace varve::maintain {

namespace {

// Number of births skipped if an unknown birth may have been given: a lost container or a damaged
// manifest may have had the birth, and an open version may refer to the birth.
constexpr std::uint64_t kBirthsSkipped = std::uint64_t{1} << 16;

}  // namespace

void PoolClaims::add(const std::map<VersionNumber, base::IdRuns>& chunks_of) {
  for (const auto& [number, chunks] : chunks_of) {
    const auto shared = catalog::pool_part(chunks);
    if (shared.size() == 0) continue;
    note_birth(shared.runs().back().first.birth());
    add(shared);
  }
}

void PoolClaims::note_birth(VersionNumber birth) {
  last_birth_ = std::max(last_birth_, std::optional(birth));
}

void PoolClaims::note_births(std::string_view chunks) {
  const auto decoded = base::IdRuns::decode(chunks);
  if (!decoded || decoded->size() == 0 || !is_pool(decoded->runs().back().first)) return;
  note_birth(decoded->runs().back().first.birth());
}

void PoolClaims::note_next_birth(std::string_view setting) {
  const auto next = catalog::decode_pool_birth(setting);
  if (!next) return;
  const auto number = static_cast<std::uint32_t>(*next);
  if (number == kPoolBit) return;
  note_birth(static_cast<VersionNumber>(number - 1));
}

VersionNumber PoolClaims::last_birth() const {
  std::uint64_t birth =
      static_cast<std::uint32_t>(last_birth_.value_or(static_cast<VersionNumber>(kPoolBit)));
  if (!complete_) birth += kBirthsSkipped;
  return static_cast<VersionNumber>(std::min<std::uint64_t>(birth, UINT32_MAX));
}

}  // namespace varve::maintain
