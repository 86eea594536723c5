// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "base/id_runs.h"
#include "base/ids.h"
#include "varve/types.h"

namespace varve::maintain {

/// The claims of the series on a pool whose catalog is rebuilt: the chunks needed by versions, and
/// the births that were possibly given. For a single use by a single thread.
class PoolClaims {
 public:
  /// Adds the chunks of the versions of a series. The chunks outside of the pool do not count.
  void add(const std::map<VersionNumber, base::IdRuns>& chunks_of);
  /// Adds further chunks of the pool: the targets of aliases.
  void add(const base::IdRuns& chunks) { wanted_ = wanted_.unite(chunks); }
  /// Records that the birth was given.
  void note_birth(VersionNumber birth);
  /// Records the births in an encoded set of chunks. Damaged sets do not count.
  void note_births(std::string_view chunks);
  /// Records the births before the next birth, from a setting of labels.
  void note_next_birth(std::string_view setting);
  /// Records that the claims may be incomplete: data is damaged, or a version is open.
  void set_incomplete() { complete_ = false; }

  [[nodiscard]] const base::IdRuns& wanted() const { return wanted_; }
  /// Returns false if also chunks outside of wanted() may be needed.
  [[nodiscard]] bool are_complete() const { return complete_; }
  /// Returns whether any birth was given.
  [[nodiscard]] bool has_births() const { return last_birth_.has_value(); }
  /// Returns the highest birth possibly given: the highest recorded birth and, if the claims are
  /// incomplete, 65536 further births.
  [[nodiscard]] VersionNumber last_birth() const;

 private:
  base::IdRuns wanted_;
  bool complete_ = true;
  std::optional<VersionNumber> last_birth_;
};

}  // namespace varve::maintain
