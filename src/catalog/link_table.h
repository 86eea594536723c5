// SPDX-License-Identifier: Apache-2.0
// Which names of a sealed version belong to one hard-linked file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/object_store.h"
#include "format/dir_node.h"
#include "varve/result.h"
#include "varve/version_reader.h"

namespace varve::catalog {

/// Immutable. A version that goes on from a sealed one needs it to find all names of a file
/// that changes, without a walk through the tree. 8 bytes a name and 16 a file.
class LinkTable {
 public:
  /// A name that has a link group.
  struct Entry {
    std::uint32_t rank = 0;
    std::uint64_t group = 0;
  };
  /// The same, led back to the file's first name in tree order.
  struct Name {
    std::uint32_t rank = 0;
    std::uint32_t first = 0;
    bool operator==(const Name&) const = default;
  };

  LinkTable() = default;
  /// Takes the names of a version in any order, each rank once.
  static LinkTable from(std::vector<Entry> entries);
  /// Finds them by a walk through the whole tree.
  [[nodiscard]] static Result<LinkTable> collect(ObjectReader& objects,
                                                 const format::DirEntry& root);

  /// The rank of the file's first name: `rank` itself where the file has no other.
  [[nodiscard]] Rank first_of(Rank rank) const;
  /// The link group of the file whose first name is `first`; 0 if it has one name.
  [[nodiscard]] std::uint64_t group_of(Rank first) const;
  /// In ascending rank.
  [[nodiscard]] const std::vector<Name>& names() const { return names_; }
  /// Those of the ranks [from, from + count).
  [[nodiscard]] std::span<const Name> names_in(Rank from, std::uint64_t count) const;
  /// All groups, ascending.
  [[nodiscard]] std::vector<std::uint64_t> groups() const;
  bool operator==(const LinkTable& other) const = default;

  /// docs/FORMAT.md §7.
  void encode(std::string& out) const;
  [[nodiscard]] static Result<LinkTable> decode(std::string_view bytes);

 private:
  struct File {
    std::uint32_t first = 0;
    std::uint64_t group = 0;
    bool operator==(const File&) const = default;
  };
  std::vector<Name> names_;
  std::vector<File> files_;  // In ascending first.
};

}  // namespace varve::catalog
