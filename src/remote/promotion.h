// SPDX-License-Identifier: Apache-2.0
// Makes an attached folder the writer's folder in place. docs/decisions/164.
#pragma once

#include <string>

#include "remote/bucket_hooks.h"
#include "remote/store_place.h"
#include "varve/options.h"
#include "varve/result.h"

namespace varve::remote {

/// Returns whether the folder is a repository that is attached for reading. Errors: errors of
/// reading the folder.
[[nodiscard]] Result<bool> is_reader_folder(const std::string& folder, bool trust_owner);

/// The folder to promote.
struct PromotionRequest {
  std::string folder{};
  std::string place{};  ///< The place named by the user; the folder must belong to the place.
  ReadSuperblock read_superblock{};
};

/// Makes a folder that is attached for reading the folder that writes. First brings the folder to
/// the newest head, and then takes over as a new folder does. Keeps the folder's settings and
/// cache. At each moment, also after a crash, the folder is attached or is the writer's folder; the
/// same call again completes an interrupted promotion.
/// Errors: kExists if the folder belongs to another place; kLocked while another process uses the
/// folder, or if another writer has created a head meanwhile; kCorrupt if the store has lost a
/// newer state or the folder's own state, unless the options accept an older state; kCorrupt for a
/// state of another history, and for an older state than the local machine remembers; errors of
/// take_over_writing().
[[nodiscard]] Result<void> promote(const PromotionRequest& request, const OpenOptions& options,
                                   const BucketHooks& hooks);

}  // namespace varve::remote
