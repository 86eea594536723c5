// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "varve/repository.h"
#include "varve/result.h"

namespace varve::cli {

/// For commands that only look: works beside a process that writes.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_read(const std::string& path,
                                                               bool probe_catalog = false);
/// kLocked where another process writes, a daemon perhaps.
[[nodiscard]] Result<std::unique_ptr<Repository>> open_to_write(const std::string& path);

}  // namespace varve::cli
