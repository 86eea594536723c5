// SPDX-License-Identifier: Apache-2.0
// Tells the user of chunks that are known to be damaged, and has them quarantined.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/output.h"
#include "control/repository_control.h"
#include "varve/check.h"

namespace varve::cli {

/// Advice for the user: how lost content comes back.
inline constexpr const char* kHowToHeal =
    "store the source again with `varve store`, then run `varve repair`, which takes the content "
    "from there, or from the folder that --from names";

/// Quarantines the chunks that the record of checks names, through the daemon that has the
/// repository mounted, or by opening the repository for writing. Sets
/// CheckReport::quarantined on success. Otherwise the next writer quarantines them.
/// Does nothing unless the report says that the record names some. No object of this process may
/// have the repository open.
void quarantine_damage(const std::string& repository, CheckReport& report, const Context& context);

/// Names the files of a sealed version whose content is known to be lost. Says nothing if there are
/// none, or if they cannot be found out, as from a daemon of an older Varve. `version`:
/// SERIES/VERSION.
void report_lost_files(control::RepositoryControl& control, const std::string& version, bool json);

/// Returns the names of lost files as a list for messages: "a, b and 3 more".
[[nodiscard]] std::string lost_files_text(const LostFiles& lost);
/// Returns the JSON of lost files, without the version.
[[nodiscard]] Json lost_files_json(const LostFiles& lost);

}  // namespace varve::cli
