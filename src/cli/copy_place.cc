// SPDX-License-Identifier: Apache-2.0
#include "cli/copy_place.h"

#include <utility>

#include "cli/repository_access.h"

namespace varve::cli {
namespace {

bool is_no_repository(const Result<std::unique_ptr<Repository>>& opened) {
  return !opened && opened.error().code() == ErrorCode::kNoRepository;
}

}  // namespace

Result<std::unique_ptr<Repository>> open_copy_place(const std::string& path,
                                                    const TargetSetup& setup, bool dry_run,
                                                    bool source_is_encrypted) {
  if (dry_run) {
    auto opened = open_to_read(path);
    if (is_no_repository(opened)) return std::unique_ptr<Repository>();
    return opened;
  }
  auto opened = open_to_write(path);
  if (is_no_repository(opened) && source_is_encrypted) {
    return std::move(opened).error().with_more(
        ". The source is encrypted, and a copy does not decide whether the target is");
  }
  if (is_no_repository(opened)) {
    VARVE_TRY(create_target(path, setup));
    opened = open_to_write(path);
  }
  if (!opened && opened.error().code() == ErrorCode::kLocked) {
    return std::move(opened).error().with_context(
        "the target of a copy must not be mounted read-write, nor receive another copy");
  }
  return opened;
}

}  // namespace varve::cli
