// SPDX-License-Identifier: Apache-2.0
// Checking all data over and over, a part at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "io/file_system.h"
#include "meta/lmdb.h"
#include "varve/maintenance.h"
#include "varve/result.h"

namespace varve::maintain {

/// What a pass through all data has done so far; the file `scrub` in the repository.
struct ScrubState {
  std::optional<CheckPosition> reached;
  std::uint64_t damages = 0;  ///< Found in this pass.
  bool operator==(const ScrubState&) const = default;
};

[[nodiscard]] std::string encode_scrub_state(const ScrubState& state);
/// A state that cannot be read is that of a pass that has not begun.
[[nodiscard]] ScrubState decode_scrub_state(const std::string& text);

[[nodiscard]] Result<ScrubReport> scrub(const meta::Env& catalog, io::FileSystem& files,
                                        const std::string& repository_path,
                                        const ScrubOptions& options,
                                        const std::function<void(const CheckProgress&)>& progress);

}  // namespace varve::maintain
