// SPDX-License-Identifier: Apache-2.0
// Decides which entries of a source directory are stored.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "transfer/exclude_rules.h"
#include "transfer/path_selection.h"
#include "varve/backup.h"
#include "varve/result.h"

namespace varve::transfer {

/// Applies the parts of StoreOptions for leaving out entries of a source. Not thread-safe.
/// Lifetime: the options must outlive the object.
class SourceFilter {
 public:
  /// Errors: kInvalid for a forbidden pattern or path.
  [[nodiscard]] static Result<SourceFilter> create(const StoreOptions& options);

  /// Returns whether the entry is left out, with everything below the entry. `path` is relative to
  /// the source. `mode` is nullopt if the type is unknown: then returns true only if no type would
  /// be stored.
  [[nodiscard]] bool leaves_out(std::string_view path, std::optional<mode_t> mode);
  /// Returns the names of an open directory that may be stored, in byte order. Must be called for
  /// the source itself first, with an empty path.
  [[nodiscard]] Result<std::vector<std::string>> list(int directory_fd, const struct stat& status,
                                                      const std::string& path);
  /// Returns the paths of StoreOptions::only not met by the walk and not excluded.
  [[nodiscard]] std::vector<std::string> missing() const;

 private:
  SourceFilter(const StoreOptions& options, ExcludeRules rules, PathSelection selection)
      : options_(&options), rules_(std::move(rules)), selection_(std::move(selection)) {}

  const StoreOptions* options_;
  ExcludeRules rules_;
  PathSelection selection_;
  std::set<std::string, std::less<>> missing_;
  std::optional<dev_t> device_;  // Device of the source directory.
};

/// Checks that the source can be opened and listed, and that a list in StoreOptions::only names
/// something below the source. Follows no symlinks below the source.
/// Errors: kNotFound if no listed path exists; the errors of opening and listing the source.
[[nodiscard]] Result<void> check_source(const std::string& directory, const StoreOptions& options);

/// Returns whether nothing of the source would be stored: the source has no entries but excluded
/// entries, and perhaps an empty directory lost+found, as on a disk without files. Reads only the
/// names in the source directory itself.
/// Errors: the errors of opening and listing the source.
[[nodiscard]] Result<bool> is_empty_source(const std::string& directory,
                                           const StoreOptions& options);

}  // namespace varve::transfer
