// SPDX-License-Identifier: Apache-2.0
#include "copy/tree_view.h"

#include <utility>

namespace varve::copy {
namespace {

constexpr std::uint64_t kGroupMark = std::uint64_t{1} << 63;  // Above all ranks and inode numbers.

class OpenViewFile final : public ViewFile {
 public:
  explicit OpenViewFile(std::unique_ptr<OpenFile> file) : file_(std::move(file)) {}
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    return file_->read(offset, out);
  }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    return file_->seek_data(offset);
  }

 private:
  const std::unique_ptr<OpenFile> file_;
};

class OpenView final : public TreeView {
 public:
  explicit OpenView(VersionWriter& version) : version_(version) {}
  std::uint64_t root() const override { return kRootIno; }
  Result<ViewEntry> get(std::uint64_t id) override { return seen(version_.get(id)); }
  Result<ViewEntry> lookup(std::uint64_t directory, std::string_view name) override {
    return seen(version_.lookup(directory, name));
  }
  Result<std::string> read_link(std::uint64_t id) override { return version_.read_link(id); }
  Result<Xattrs> xattrs(std::uint64_t id) override { return version_.xattrs(id); }
  Result<std::unique_ptr<ViewFile>> open(std::uint64_t id) override {
    VARVE_TRY_ASSIGN(auto file, version_.open(id, false));
    return std::unique_ptr<ViewFile>(std::make_unique<OpenViewFile>(std::move(file)));
  }

 private:
  static Result<ViewEntry> seen(const Result<OpenEntry>& found) {
    if (!found) return found.error();
    return ViewEntry{found->ino, found->ino, found->attributes};
  }
  VersionWriter& version_;
};

class SealedViewFile final : public ViewFile {
 public:
  explicit SealedViewFile(std::shared_ptr<FileReader> file) : file_(std::move(file)) {}
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    return file_->read(offset, out);
  }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    return file_->seek_data(offset);
  }

 private:
  const std::shared_ptr<FileReader> file_;
};

class SealedView final : public TreeView {
 public:
  explicit SealedView(VersionReader& version) : version_(version) {}
  std::uint64_t root() const override { return 0; }
  Result<ViewEntry> get(std::uint64_t id) override { return seen(version_.get(id)); }
  Result<ViewEntry> lookup(std::uint64_t directory, std::string_view name) override {
    return seen(version_.lookup(directory, name));
  }
  Result<std::string> read_link(std::uint64_t id) override { return version_.read_link(id); }
  Result<Xattrs> xattrs(std::uint64_t id) override { return version_.xattrs(id); }
  Result<std::unique_ptr<ViewFile>> open(std::uint64_t id) override {
    VARVE_TRY_ASSIGN(auto file, version_.open(id));
    return std::unique_ptr<ViewFile>(std::make_unique<SealedViewFile>(std::move(file)));
  }

 private:
  static Result<ViewEntry> seen(const Result<SealedEntry>& found) {
    if (!found) return found.error();
    const std::uint64_t file =
        found->link_group != 0 ? found->link_group | kGroupMark : found->rank;
    return ViewEntry{found->rank, file, found->attributes};
  }
  VersionReader& version_;
};

}  // namespace

std::unique_ptr<TreeView> view_of(VersionWriter& version) {
  return std::make_unique<OpenView>(version);
}
std::unique_ptr<TreeView> view_of(VersionReader& version) {
  return std::make_unique<SealedView>(version);
}

}  // namespace varve::copy
