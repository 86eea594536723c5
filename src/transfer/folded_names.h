// SPDX-License-Identifier: Apache-2.0
// Names of a directory without distinction of upper and lower case, as on FAT or with casefold.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "varve/result.h"

namespace varve::transfer {

/// Finds names that lead to an entry with a different name, in a directory of the target. Not
/// thread-safe.
class FoldedNames {
 public:
  /// Returns the different name of the entry reached by `name`; nullopt if the directory has `name`
  /// itself. `name` exists. Lists the directory only if the directory may fold case.
  /// Errors: the errors of listing the directory.
  [[nodiscard]] Result<std::optional<std::string>> other_name(int directory_fd,
                                                              const std::string& name);
  /// Notes that `name` of the version is restored as the entry `other`. Returns the earlier name of
  /// the entry in the version; nullopt if there is none.
  [[nodiscard]] std::optional<std::string> take(const std::string& other, const std::string& name);

 private:
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> like(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> same_inode(int directory_fd,
                                                      const std::string& name) const;

  bool is_exact_ = false;           // True once a name in the opposite case is missing.
  std::vector<std::string> names_;  // Names of the directory, in byte order.
  std::map<std::string, std::string> taken_;
};

}  // namespace varve::transfer
