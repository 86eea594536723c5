// SPDX-License-Identifier: Apache-2.0
// A version in memory: written as an open one, read as a sealed one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "varve/backup.h"
#include "varve/browse.h"

namespace varve::testing {

struct FakeNode {
  Ino ino = 0;
  Attributes attributes;
  std::string symlink_target;
  Xattrs xattrs;
  std::string data;
  /// Begin and end of each written range, ascending and separate. The rest are holes.
  std::map<std::uint64_t, std::uint64_t> written;
  /// Any read that touches one of these fails.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> damaged;
  /// In name order if created by FakeWriter. Tests of hostile trees add any entries directly.
  std::vector<std::pair<std::string, std::shared_ptr<FakeNode>>> children;

  [[nodiscard]] std::shared_ptr<FakeNode> child(std::string_view name) const;
  void add_written(std::uint64_t begin, std::uint64_t end);
};
using FakeNodePtr = std::shared_ptr<FakeNode>;

/// Create nodes for trees that a test builds directly.
FakeNodePtr make_directory();
FakeNodePtr make_file(std::string data);
FakeNodePtr make_symlink(std::string target);

class FakeWriter final : public VersionWriter {
 public:
  FakeWriter();
  [[nodiscard]] const FakeNodePtr& root() const { return nodes_.at(kRootIno); }
  /// Makes writes fail with this code after this many bytes.
  void fail_after(std::uint64_t bytes, ErrorCode code);

  VersionInfo info() const override { return {}; }
  Result<OpenEntry> get(Ino ino) override;
  Result<OpenEntry> lookup(Ino directory, std::string_view name) override;
  Result<Ino> parent(Ino directory) override;
  Result<void> list(Ino directory, std::string_view after, const Visitor& visit) override;
  Result<OpenEntry> create(Ino directory, std::string_view name, const NewFile& file) override;
  Result<OpenEntry> link(Ino target, Ino directory, std::string_view name) override;
  Result<OpenEntry> clone(VersionReader&, Rank, Ino, std::string_view) override;
  Result<void> unlink(Ino directory, std::string_view name) override;
  Result<void> remove_directory(Ino directory, std::string_view name) override;
  Result<void> rename(Ino, std::string_view, Ino, std::string_view, RenameMode) override;
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
  friend class FakeOpenFile;
  [[nodiscard]] Result<void> take_bytes(std::uint64_t bytes);
  std::map<Ino, FakeNodePtr> nodes_;
  Ino next_ino_ = kRootIno + 1;
  std::optional<std::uint64_t> bytes_left_;
  ErrorCode failure_ = ErrorCode::kNoSpace;
};

class FakeReader final : public VersionReader {
 public:
  explicit FakeReader(FakeNodePtr root);
  /// Returns the ranks of the opened files, in order.
  [[nodiscard]] const std::vector<Rank>& opened() const { return opened_; }

  const VersionInfo& info() const override { return info_; }
  Result<SealedEntry> get(Rank rank) override;
  Result<SealedEntry> lookup(Rank directory, std::string_view name) override;
  Result<Rank> parent(Rank rank) override;
  Result<void> list(Rank directory, std::uint64_t after, const Visitor& visit) override;
  Result<std::string> read_link(Rank rank) override;
  Result<Xattrs> xattrs(Rank rank) override;
  Result<std::shared_ptr<FileReader>> open(Rank rank) override;
  Result<void> locate_data(Rank rank, std::uint64_t offset, const PieceVisitor& visit) override;
  void read_pieces(std::span<const StoredPiece> pieces, const PieceTaker& take) override;
  /// Returns the places that were read, in order.
  [[nodiscard]] const std::vector<std::uint64_t>& read_places() const { return read_places_; }
  /// Makes locate_data() of this file fail after its first piece.
  void lose_places_of(Rank rank) { lost_places_of_ = rank; }

 private:
  struct Entry {
    FakeNodePtr node;
    std::string name;
    Rank parent = 0;
    std::vector<Rank> children;
  };
  [[nodiscard]] SealedEntry sealed(Rank rank) const;
  VersionInfo info_;
  std::vector<Entry> entries_;
  std::map<const FakeNode*, std::uint64_t> names_;
  std::vector<Rank> opened_;
  std::vector<std::uint64_t> read_places_;
  std::optional<Rank> lost_places_of_;
};

}  // namespace varve::testing
