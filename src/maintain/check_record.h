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

/// Limit of the runs of chunks in a record. Further runs are left out: after the quarantine of the
/// recorded runs, the next check finds the rest.
inline constexpr std::size_t kRecordedRunsMax = 16384;

/// The content of the file `checked`.
struct RecordOfChecks {
  std::vector<EarlierCheck> checks;  ///< Ascend by depth, and have each depth once.
  LostChunks lost;                   ///< Damaged chunks that no writer has quarantined yet.
  bool operator==(const RecordOfChecks&) const = default;
};

/// Encodes a record for the file `checked` (docs/FORMAT.md).
[[nodiscard]] std::string encode_check_record(const RecordOfChecks& record);
/// Decodes the text of a record. Returns nullopt for malformed text.
[[nodiscard]] std::optional<RecordOfChecks> decode_check_record(const std::string& text);

/// Encodes the results of checks as a record without damaged chunks.
[[nodiscard]] std::string encode_earlier_checks(const std::vector<EarlierCheck>& checks);
/// Decodes the results in the text of a record. Returns no results for malformed text.
[[nodiscard]] std::vector<EarlierCheck> decode_earlier_checks(const std::string& text);

/// Returns the recorded results, by ascending depth; none if the file is missing. For a damaged
/// file, returns a check of the structure that ended at 0 and found one damage: the next check
/// replaces the result.
[[nodiscard]] std::vector<EarlierCheck> read_earlier_checks(io::FileSystem& files,
                                                            const std::string& repository_path);

/// Returns the damaged chunks in the record; none if the file is missing or damaged.
[[nodiscard]] LostChunks read_lost_chunks(io::FileSystem& files,
                                          const std::string& repository_path);
/// Returns the damaged chunks in the record; none if the file is missing.
/// Errors: kCorrupt for a damaged file; the errors of reading.
[[nodiscard]] Result<LostChunks> find_lost_chunks(io::FileSystem& files,
                                                  const std::string& repository_path);
/// Adds damaged chunks to the record. A missing or damaged record becomes a record without results
/// of checks.
/// Errors: kNotPermitted if another user owns the repository: the owner could not read the record;
/// the errors of reading and writing the file.
[[nodiscard]] Result<void> record_lost_chunks(io::FileSystem& files,
                                              const std::string& repository_path,
                                              const LostChunks& found);
/// Removes chunks from the record, after a commit that quarantined the chunks. Logs write errors:
/// the next writer then reads the chunks again.
void forget_lost_chunks(io::FileSystem& files, const std::string& repository_path,
                        const LostChunks& taken);

/// Records the result of a check. `whole` is the depth up to which the check compared everything;
/// `reached` is the depth at which damage was found. Adds `lost` to the damaged chunks in the
/// record; a whole check of the data without damage drops the recorded chunks instead. Returns
/// whether the result is recorded. Logs write errors, because a check may run without permission to
/// write.
struct CheckEnd {
  CheckDepth whole = CheckDepth::kStructure;
  CheckDepth reached = CheckDepth::kStructure;
  std::uint64_t damages = 0;
  LostChunks lost{};
};
bool record_check(io::FileSystem& files, const std::string& repository_path,
                  const base::Clock& clock, const CheckEnd& end);

/// Sets the number of damages of the recorded result of a depth, and keeps the time of that check.
/// Does nothing without such a result. Logs write errors.
void set_recorded_damages(io::FileSystem& files, const std::string& repository_path,
                          CheckDepth depth, std::uint64_t damages);

}  // namespace varve::maintain
