// SPDX-License-Identifier: Apache-2.0
// The names of each hard-linked file of a sealed version.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/object_store.h"
#include "format/dir_node.h"
#include "varve/browse.h"
#include "varve/result.h"

namespace varve::catalog {

/// The hard-linked names of a sealed version. A version based on the sealed version uses the table
/// to find all names of a changed file without walking the tree. Immutable. Memory: 8 bytes per
/// name and 16 per file.
class LinkTable {
 public:
  /// A name with a link group.
  struct Entry {
    std::uint32_t rank = 0;
    std::uint64_t group = 0;
  };
  /// A name with the first name of its file in tree order.
  struct Name {
    std::uint32_t rank = 0;
    std::uint32_t first = 0;
    bool operator==(const Name&) const = default;
  };

  LinkTable() = default;
  /// Builds a table from the names of a version, in any order. Each rank must occur once.
  static LinkTable from(std::vector<Entry> entries);
  /// Builds a table by walking the whole tree.
  [[nodiscard]] static Result<LinkTable> collect(ObjectReader& objects,
                                                 const format::DirEntry& root);

  /// Returns the rank of the file's first name. Returns `rank` if the file has only one name.
  [[nodiscard]] Rank first_of(Rank rank) const;
  /// Returns the link group of the file whose first name is `first`; 0 for a single name.
  [[nodiscard]] std::uint64_t group_of(Rank first) const;
  /// Returns all names, in ascending rank.
  [[nodiscard]] const std::vector<Name>& names() const { return names_; }
  /// Returns the names with ranks in [from, from + count).
  [[nodiscard]] std::span<const Name> names_in(Rank from, std::uint64_t count) const;
  /// Returns all groups, ascending.
  [[nodiscard]] std::vector<std::uint64_t> groups() const;
  bool operator==(const LinkTable& other) const = default;

  /// Appends the encoded table (docs/FORMAT.md §7).
  void encode(std::string& out) const;
  [[nodiscard]] static Result<LinkTable> decode(std::string_view bytes);

 private:
  struct File {
    std::uint32_t first = 0;
    std::uint64_t group = 0;
    bool operator==(const File&) const = default;
  };
  std::vector<Name> names_;
  std::vector<File> files_;  // In ascending order of `first`.
};

}  // namespace varve::catalog
