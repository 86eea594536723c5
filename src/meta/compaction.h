// SPDX-License-Identifier: Apache-2.0
// Gives the free pages of an environment back to the disk (docs/ORDERING.md O38).
#pragma once

#include <span>
#include <string>

#include "io/file_system.h"
#include "meta/key_renewal.h"
#include "meta/lmdb.h"
#include "varve/arrange.h"
#include "varve/result.h"

namespace varve::meta {

/// Returns whether a compaction saves much: more than half of the pages are free, or the file is
/// much longer than the allocated space.
[[nodiscard]] Result<bool> wastes_space(const Env& env);

/// Copies the used pages to a new file, verifies the copy, and replaces data.mdb by the copy. The
/// copy has the same last commit, under the same number. The caller is the only writer and holds
/// the writer's lock. Other processes wait to open the environment until compact() ends.
///
/// Whatever the outcome, the caller must not begin another WriteTxn: afterwards, `env` shows the
/// old file, which has no name.
/// Errors: kBusy if another process has the environment open; kNoSpace; kNotPermitted if the copy
/// cannot get the owner of the original; kCorrupt if the copy differs from the original. The old
/// file stays, except if syncing the folder failed: then either file may be in place after a crash.
[[nodiscard]] Result<CatalogCompaction> compact(const Env& env, io::FileSystem& files,
                                                std::span<const char* const> tables);

/// As compact(), for an encrypted environment: the copy has another key, which seals all values
/// again. Commits once to the old file, so the copy has a new number.
/// Errors: as compact().
[[nodiscard]] Result<CatalogCompaction> renew_key(const Env& env, io::FileSystem& files,
                                                  std::span<const char* const> tables,
                                                  const DerivedTable& derived);

/// Removes the copy left in `directory` by an interrupted compaction. The caller holds the writer's
/// lock.
[[nodiscard]] Result<void> remove_unfinished_copy(io::FileSystem& files,
                                                  const std::string& directory);

}  // namespace varve::meta
