// SPDX-License-Identifier: Apache-2.0
// Checks all data continuously, a part at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "format/data_codecs.h"
#include "io/file_system.h"
#include "maintain/checker.h"
#include "meta/lmdb.h"
#include "varve/check.h"
#include "varve/result.h"

namespace varve::maintain {

/// The progress of a pass through all data, stored in the file `scrub` of the repository.
struct ScrubState {
  std::optional<CheckPosition> reached;
  std::uint64_t damages = 0;  ///< Number of damages found in this pass.
  bool operator==(const ScrubState&) const = default;
};

[[nodiscard]] std::string encode_scrub_state(const ScrubState& state);
/// Decodes a state. Returns the start of a pass for malformed text.
[[nodiscard]] ScrubState decode_scrub_state(const std::string& text);

/// Continues the pass through all data, or starts the next one. Sets `lost` to the damaged chunks
/// that Checker::lost_chunks() returns.
[[nodiscard]] Result<ScrubReport> scrub(const format::DataCodecs& codecs, const meta::Env& catalog,
                                        io::FileSystem& files, const std::string& repository_path,
                                        const ScrubOptions& options,
                                        const std::function<void(const CheckProgress&)>& progress,
                                        const CheckHelpers& helpers, LostChunks& lost);

}  // namespace varve::maintain
