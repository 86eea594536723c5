// SPDX-License-Identifier: Apache-2.0
// Reports chunks known to be damaged to the user, and quarantines the chunks.
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

/// Quarantines the chunks named by the record of checks, through the daemon that has the repository
/// mounted, or by opening the repository for writing. Sets CheckReport::quarantined on success.
/// After a failure, the next writer quarantines the chunks.
/// Does nothing unless CheckReport::quarantine_is_due. No object of the calling process may have
/// the repository open.
void quarantine_damage(const std::string& repository, CheckReport& report, const Context& context);

/// Prints the files of a sealed version with lost content. Prints nothing if no files are known to
/// be lost, or if the query fails, as with a daemon of an older Varve. `version`: SERIES/VERSION.
void report_lost_files(control::RepositoryControl& control, const std::string& version, bool json);

/// Returns the names of lost files as a list for messages: "a, b and 3 more".
[[nodiscard]] std::string lost_files_text(const LostFiles& lost);
/// Returns the JSON of lost files, without the version.
[[nodiscard]] Json lost_files_json(const LostFiles& lost);

}  // namespace varve::cli
