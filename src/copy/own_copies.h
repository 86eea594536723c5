// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "copy/target.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::copy {

/// A series of the target with copies of a single source.
struct OwnSeries {
  TargetSeries series;
  std::vector<TargetVersion> versions;
  /// The series existed without versions, so the name and the files beside versions may belong to
  /// another user.
  bool was_empty = false;

  /// Returns the sealed copy with a number, or null.
  [[nodiscard]] TargetVersion* find_copy(VersionNumber number);
};

/// The series of a target with copies of a single source only, as decided by the versions' recorded
/// origins. Not thread-safe.
class OwnCopies {
 public:
  /// Reads all versions of the target. `origin` is the Repository::id() of the source; empty: the
  /// repository whose copies the target has.
  /// Errors: kInvalid if `origin` is empty and the target has copies of several repositories.
  /// Lifetime: the target outlives the object.
  [[nodiscard]] static Result<OwnCopies> read(Target& target, std::string origin);

  /// Returns the id of the source; empty until the first copy, if no id was given.
  [[nodiscard]] const std::string& origin() const { return origin_; }
  void pin(const std::string& origin) { origin_ = origin; }
  /// Returns whether the target has versions not copied from the source.
  [[nodiscard]] bool has_others() const { return has_others_; }

  [[nodiscard]] std::vector<TargetSeries> series() const;
  /// Returns the number of series of the source and of series without versions, which the source
  /// may have made, too.
  [[nodiscard]] std::size_t possible_series() const { return own_.size() + empty_.size(); }
  /// Returns a series with copies of the source, or null.
  [[nodiscard]] OwnSeries* find(SeriesId series);
  /// Adds a new series, made by the source.
  void add(TargetSeries series) { own_.push_back({std::move(series), {}}); }
  /// Adds the series with a name to the source's series if the series has no versions. Returns the
  /// series' number, or nullopt.
  [[nodiscard]] std::optional<SeriesId> take_empty(const std::string& name);
  /// Reads the versions of a series again.
  [[nodiscard]] Result<void> refresh(SeriesId series);

 private:
  OwnCopies(Target& target, std::string origin) : target_(&target), origin_(std::move(origin)) {}
  /// Puts a series into own_, empty_ or neither.
  void sort_in(OwnSeries series);

  Target* target_;
  std::string origin_;
  std::vector<OwnSeries> own_;
  std::vector<OwnSeries> empty_;
  bool has_others_ = false;
};

}  // namespace varve::copy
