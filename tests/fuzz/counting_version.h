// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "varve/backup.h"

namespace varve::fuzz {

/// An open version that keeps names and attributes and no data. Ends the program if a caller writes
/// data out of order, or gives a name that no file can have. Not thread-safe.
class CountingVersion final : public VersionWriter {
 public:
  CountingVersion();
  /// Returns the number of names below the root.
  [[nodiscard]] std::uint64_t names() const;

  VersionInfo info() const override { return {}; }
  Result<OpenEntry> get(Ino ino) override;
  Result<OpenEntry> lookup(Ino directory, std::string_view name) override;
  Result<Ino> parent(Ino directory) override;
  Result<void> list(Ino directory, std::string_view after, const Visitor& visit) override;
  Result<OpenEntry> create(Ino directory, std::string_view name, const NewFile& file) override;
  Result<OpenEntry> link(Ino target, Ino directory, std::string_view name) override;
  Result<OpenEntry> clone(VersionReader& source, Rank rank, Ino directory,
                          std::string_view name) override;
  Result<void> unlink(Ino directory, std::string_view name) override;
  Result<void> remove_directory(Ino directory, std::string_view name) override;
  Result<void> rename(Ino from_directory, std::string_view from_name, Ino to_directory,
                      std::string_view to_name, RenameMode mode) override;
  Result<OpenEntry> set_attributes(Ino ino, const AttributeChange& change) override;
  Result<std::string> read_link(Ino ino) override;
  Result<Xattrs> xattrs(Ino ino) override;
  Result<void> set_xattr(Ino ino, std::string_view name, std::string_view value,
                         XattrMode mode) override;
  Result<void> remove_xattr(Ino ino, std::string_view name) override;
  Result<std::unique_ptr<OpenFile>> open(Ino ino, bool for_writing) override;
  Result<void> sync() override { return {}; }
  std::size_t writers() const override { return 0; }

 private:
  struct Node {
    Attributes attributes;
    std::map<std::string, Ino, std::less<>> children;
  };
  class File;
  [[nodiscard]] Node& directory_of(Ino ino);

  std::map<Ino, Node> nodes_;
  Ino next_ = kRootIno + 1;
};

}  // namespace varve::fuzz
