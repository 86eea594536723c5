// SPDX-License-Identifier: Apache-2.0
// What stands in the target of a restore already. All of it by names in open directories, of
// which the last component is never followed.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>

#include "transfer/problem_list.h"
#include "varve/result.h"
#include "varve/version_reader.h"

namespace varve::transfer {

/// openat2(2) that can neither leave the directory nor pass a symlink. `name` is one
/// component or several. -1 and errno as openat(2).
[[nodiscard]] int open_beneath(int directory_fd, const char* name, int flags);

/// nullopt if nothing has this name.
[[nodiscard]] Result<std::optional<struct stat>> stat_entry(int directory_fd,
                                                            const std::string& name);

/// Whether a regular file has the bytes of `source`; false too where either cannot be read.
/// `advance` is told of pieces read; it returns false to stop (kInterrupted). Compares the
/// bytes from `begin` up to `end`.
[[nodiscard]] Result<bool> same_content(FileReader& source, int fd, std::uint64_t begin,
                                        std::uint64_t end,
                                        const std::function<bool(std::uint64_t)>& advance);

/// Removes an entry with all that is below it. Mount points are left, with a problem.
void remove_entry(int directory_fd, const std::string& name, const std::string& path,
                  ProblemList& problems, const std::function<void(const std::string&)>& removed);

}  // namespace varve::transfer
