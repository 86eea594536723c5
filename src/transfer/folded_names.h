// SPDX-License-Identifier: Apache-2.0
// Names of a directory that does not tell upper and lower case apart, as on FAT or with casefold.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "varve/result.h"

namespace varve::transfer {

/// Finds names that lead to an entry of another name, in one directory of the target. Not
/// thread-safe.
class FoldedNames {
 public:
  /// Returns the other name of the entry to which `name` leads; nullopt if the directory has `name`
  /// itself. `name` exists. Lists the directory only if it may fold case.
  /// Errors: those of listing the directory.
  [[nodiscard]] Result<std::optional<std::string>> other_name(int directory_fd,
                                                              const std::string& name);
  /// Notes that `name` of the version is restored as the entry `other`. Returns the earlier name
  /// that the entry has in the version; nullopt if there is none.
  [[nodiscard]] std::optional<std::string> take(const std::string& other, const std::string& name);

 private:
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> like(const std::string& name) const;
  [[nodiscard]] std::optional<std::string> same_inode(int directory_fd,
                                                      const std::string& name) const;

  bool is_exact_ = false;           // True once a name in the other case is missing.
  std::vector<std::string> names_;  // Names of the directory, in byte order.
  std::map<std::string, std::string> taken_;
};

}  // namespace varve::transfer
