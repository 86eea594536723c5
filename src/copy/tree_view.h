// SPDX-License-Identifier: Apache-2.0
// Reads the tree of an open or a sealed version, to compare the tree with changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/result.h"
#include "varve/types.h"

namespace varve::copy {

/// An entry of a tree. All names of a file have the same `file`.
struct ViewEntry {
  std::uint64_t id = 0;
  std::uint64_t file = 0;
  Attributes attributes;
};

/// A regular file of a tree.
class ViewFile {
 public:
  virtual ~ViewFile() = default;
  [[nodiscard]] virtual Result<std::size_t> read(std::uint64_t offset,
                                                 std::span<std::byte> out) = 0;
  [[nodiscard]] virtual Result<std::uint64_t> seek_data(std::uint64_t offset) = 0;
};

/// A tree. Errors: the errors of VersionWriter and VersionReader. Not thread-safe.
class TreeView {
 public:
  virtual ~TreeView() = default;
  /// Returns the number of the root directory.
  [[nodiscard]] virtual std::uint64_t root() const = 0;
  [[nodiscard]] virtual Result<ViewEntry> get(std::uint64_t id) = 0;
  [[nodiscard]] virtual Result<ViewEntry> lookup(std::uint64_t directory,
                                                 std::string_view name) = 0;
  [[nodiscard]] virtual Result<std::string> read_link(std::uint64_t id) = 0;
  [[nodiscard]] virtual Result<Xattrs> xattrs(std::uint64_t id) = 0;
  [[nodiscard]] virtual Result<std::unique_ptr<ViewFile>> open(std::uint64_t id) = 0;
};

/// Return a view of a version. Lifetime: the version outlives the view and the view's files.
[[nodiscard]] std::unique_ptr<TreeView> view_of(VersionWriter& version);
[[nodiscard]] std::unique_ptr<TreeView> view_of(VersionReader& version);

}  // namespace varve::copy
