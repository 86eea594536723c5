// SPDX-License-Identifier: Apache-2.0
// The paths of a repository's files and folders.
#pragma once

#include <string>
#include <utility>

#include "varve/types.h"

namespace varve::store {

/// Returns the paths of a repository. docs/FORMAT.md §1 describes the files.
class RepositoryPaths {
 public:
  /// `root` is the repository's folder.
  explicit RepositoryPaths(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] std::string superblock() const { return root_ + "/varve.repo"; }
  /// Returns the path of the copy of the superblock in an encrypted repository.
  [[nodiscard]] std::string keys() const { return root_ + "/varve.keys"; }
  [[nodiscard]] std::string lock() const { return root_ + "/lock"; }
  [[nodiscard]] std::string catalog() const { return root_ + "/catalog"; }
  [[nodiscard]] std::string settled() const { return root_ + "/settled"; }
  /// Returns the path of LMDB's data file.
  [[nodiscard]] std::string catalog_data() const { return root_ + "/catalog/data.mdb"; }
  /// Returns the parent of all series' folders.
  [[nodiscard]] std::string all_series() const { return root_ + "/series"; }
  [[nodiscard]] std::string series(SeriesId series) const;
  /// Returns the folder of the pool.
  [[nodiscard]] std::string pool() const { return root_ + "/pool"; }
  /// Returns the parent of all open versions' folders.
  [[nodiscard]] std::string all_staging() const { return root_ + "/staging"; }
  [[nodiscard]] std::string staging(SeriesId series, VersionNumber number) const;

 private:
  std::string root_;
};

}  // namespace varve::store
