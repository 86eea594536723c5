// SPDX-License-Identifier: Apache-2.0
// The damaged objects that the last check of a store named. docs/decisions/166.
#pragma once

#include <set>
#include <string>

#include "base/clock.h"
#include "io/file_system.h"
#include "varve/check.h"
#include "varve/result.h"

namespace varve::remote {

/// Returns the noted names of objects; none if the file is missing or malformed.
[[nodiscard]] std::set<std::string> read_damage_notes(io::FileSystem& files,
                                                      const std::string& root);

/// Returns whether the record of a check with `reads_objects` has damage, and no note has a name:
/// an earlier release made the record.
[[nodiscard]] bool has_unnamed_damage(io::FileSystem& files, const std::string& root);

/// The result of a check or a repair.
struct StoreCheckEnd {
  bool has_read_all = false;        ///< All objects were read.
  std::set<std::string> noted{};    ///< The notes before. These objects were read in any case.
  std::set<std::string> damaged{};  ///< Names of the damaged objects.
  std::size_t damages = 0;          ///< Number of damages, including damages without an object.
};
/// Records the result in the folder's files `replica/checked` and `replica/damaged`. Logs write
/// errors.
void record_store_check(io::FileSystem& files, const std::string& root, const base::Clock& clock,
                        const StoreCheckEnd& end);

}  // namespace varve::remote
