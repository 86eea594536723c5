// SPDX-License-Identifier: Apache-2.0
// The options of `varve store` for the choice of entries.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "control/stop_request.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::cli {

struct SourceArguments {
  std::vector<std::string> excludes;
  std::vector<std::string> exclude_files;
  std::string files_from;
  bool null_ends = false;
  bool exclude_caches = false;
  bool one_file_system = false;
};

/// Adds the options to a command.
void add_source_options(Command& command, SourceArguments& arguments);

/// Returns whether an option was given.
[[nodiscard]] bool chooses_entries(const SourceArguments& arguments);

/// Waits until a read of `fd` has data, an end or an error to return.
/// Errors: kInterrupted after a stop.
[[nodiscard]] Result<void> wait_for_data(int fd, const control::StopRequest& stop);

/// Returns the options of a store that leave out entries of `directory`. Reads the files named by
/// the arguments. A pattern that begins with the absolute path of `directory` becomes relative to
/// the directory, unless the directory has an entry with the whole path. A stop ends the wait for
/// the writer of a FIFO.
/// Errors: kInterrupted after a stop; the errors of opening and reading the files; kInvalid for an
/// absolute path outside of `directory`; kUsage for a pattern that is the absolute path of
/// `directory`, and for lines with NUL bytes; the errors of check_store_options().
[[nodiscard]] Result<StoreOptions> read_source_options(const SourceArguments& arguments,
                                                       const std::string& directory,
                                                       const control::StopRequest& stop);

/// Returns the path of a list relative to `directory`, which may itself be relative, without empty
/// and "." components; "" for the directory. `path` and `directory` must be in the same form,
/// absolute or not symlinked: the function resolves no symlinks.
/// Errors: kInvalid if the path is absolute and not below the directory.
[[nodiscard]] Result<std::string> listed_path(std::string_view path, const std::string& directory);

}  // namespace varve::cli
