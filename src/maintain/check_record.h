// SPDX-License-Identifier: Apache-2.0
// Remembers how the last checks of a repository ended.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "io/file_system.h"
#include "maintain/known_damage.h"
#include "varve/check.h"

namespace varve::maintain {

/// The most runs of chunks that a record names. Further runs are left out: the next check that runs
/// after the quarantine of the named ones finds them again.
inline constexpr std::size_t kRecordedRunsMax = 16384;

/// The content of the file `checked`.
struct RecordOfChecks {
  std::vector<EarlierCheck> checks;  ///< Ascend by depth, and have each depth once.
  LostChunks lost;                   ///< Damaged chunks that no writer has quarantined yet.
  bool operator==(const RecordOfChecks&) const = default;
};

/// Encodes a record as the file `checked` has it (docs/FORMAT.md).
[[nodiscard]] std::string encode_check_record(const RecordOfChecks& record);
/// Decodes such a text. Returns nullopt for malformed text.
[[nodiscard]] std::optional<RecordOfChecks> decode_check_record(const std::string& text);

/// Encodes the results of checks as a record without damaged chunks.
[[nodiscard]] std::string encode_earlier_checks(const std::vector<EarlierCheck>& checks);
/// Decodes the results in the text of a record. Returns no results for malformed text.
[[nodiscard]] std::vector<EarlierCheck> decode_earlier_checks(const std::string& text);

/// Returns the recorded results, by ascending depth. None if the file is missing. If it is damaged,
/// a check of the structure that ended at 0 and found one damage: the next check replaces it.
[[nodiscard]] std::vector<EarlierCheck> read_earlier_checks(io::FileSystem& files,
                                                            const std::string& repository_path);

/// Returns the damaged chunks that the record names. None if the file is missing or damaged.
[[nodiscard]] LostChunks read_lost_chunks(io::FileSystem& files,
                                          const std::string& repository_path);
/// Takes chunks out of the record, after a commit that quarantined them. Logs an error of writing:
/// the next writer then reads these chunks again.
void forget_lost_chunks(io::FileSystem& files, const std::string& repository_path,
                        const LostChunks& taken);

/// Records the result of a check: `whole` is the depth to which it compared everything, `reached`
/// the depth at which it found the damage. Adds `lost` to the damaged chunks that the record names.
/// A whole check of the data without damage drops these chunks instead. Returns whether the result
/// is recorded; logs an error of writing: a check may run where it must not write.
struct CheckEnd {
  CheckDepth whole = CheckDepth::kStructure;
  CheckDepth reached = CheckDepth::kStructure;
  std::uint64_t damages = 0;
  LostChunks lost{};
};
bool record_check(io::FileSystem& files, const std::string& repository_path,
                  const base::Clock& clock, const CheckEnd& end);

}  // namespace varve::maintain
