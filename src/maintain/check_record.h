// SPDX-License-Identifier: Apache-2.0
// Remembers how the last checks of a repository ended.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "io/file_system.h"
#include "varve/check.h"

namespace varve::maintain {

/// Encodes the results of checks as the file `checked` has them (docs/FORMAT.md). `checks` ascend
/// by depth, and have each depth once.
[[nodiscard]] std::string encode_earlier_checks(const std::vector<EarlierCheck>& checks);
/// Decodes such a text. Returns no results for malformed text.
[[nodiscard]] std::vector<EarlierCheck> decode_earlier_checks(const std::string& text);

/// Returns the recorded results, by ascending depth. None if the file is missing. If it is damaged,
/// a check of the structure that ended at 0 and found one damage: the next check replaces it.
[[nodiscard]] std::vector<EarlierCheck> read_earlier_checks(io::FileSystem& files,
                                                            const std::string& repository_path);

/// Records the result of a check: `whole` is the depth to which it compared everything, `reached`
/// the depth at which it found the damage. Logs an error of writing, and drops the result: a
/// check may run where it must not write.
struct CheckEnd {
  CheckDepth whole = CheckDepth::kStructure;
  CheckDepth reached = CheckDepth::kStructure;
  std::uint64_t damages = 0;
};
void record_check(io::FileSystem& files, const std::string& repository_path,
                  const base::Clock& clock, const CheckEnd& end);

}  // namespace varve::maintain
