// SPDX-License-Identifier: Apache-2.0
#include "counting_version.h"

#include <sys/stat.h>

#include <utility>

#include "checks.h"

namespace varve::fuzz {
namespace {

Error no_such_name() { return {ErrorCode::kNotFound, "no such file"}; }
Error not_offered() { return {ErrorCode::kUnsupported, "an import does not need this"}; }

void require_name(std::string_view name) {
  require(!name.empty() && name.size() <= 255 && name != "." && name != ".." &&
              name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos,
          "a file can have the name");
}

}  // namespace

class CountingVersion::File final : public OpenFile {
 public:
  File(Ino ino, Node& node) : ino_(ino), node_(node) {}

  Ino ino() const override { return ino_; }
  Result<void> write(std::uint64_t offset, std::span<const std::byte> data) override {
    require(offset >= end_, "data is written in order");
    if (offset > INT64_MAX - data.size()) return Error(ErrorCode::kTooLarge, "too large");
    end_ = offset + data.size();
    node_.attributes.size = std::max(node_.attributes.size, end_);
    return {};
  }
  Result<std::size_t> read(std::uint64_t, std::span<std::byte>) override { return not_offered(); }
  Result<std::uint64_t> seek_data(std::uint64_t) override { return not_offered(); }
  Result<std::uint64_t> seek_hole(std::uint64_t) override { return not_offered(); }
  Result<void> allocate(std::uint64_t, std::uint64_t, AllocateMode) override {
    return not_offered();
  }
  Result<std::uint64_t> clone_range(FileReader&, std::uint64_t, std::uint64_t,
                                    std::uint64_t) override {
    return not_offered();
  }
  Result<std::uint64_t> clone_range(OpenFile&, std::uint64_t, std::uint64_t,
                                    std::uint64_t) override {
    return not_offered();
  }
  Result<void> flush() override { return {}; }
  Result<void> sync() override { return {}; }

 private:
  const Ino ino_;
  Node& node_;
  std::uint64_t end_ = 0;
};

CountingVersion::CountingVersion() { nodes_[kRootIno].attributes.mode = S_IFDIR | 0755; }

std::uint64_t CountingVersion::names() const {
  std::uint64_t names = 0;
  for (const auto& [ino, node] : nodes_) names += node.children.size();
  return names;
}

CountingVersion::Node& CountingVersion::directory_of(Ino ino) {
  const auto found = nodes_.find(ino);
  require(found != nodes_.end() && S_ISDIR(found->second.attributes.mode), "a directory is used");
  return found->second;
}

Result<OpenEntry> CountingVersion::get(Ino ino) {
  const auto found = nodes_.find(ino);
  if (found == nodes_.end()) return Error(ErrorCode::kStale, "the inode is gone");
  return OpenEntry{ino, found->second.attributes};
}

Result<OpenEntry> CountingVersion::lookup(Ino directory, std::string_view name) {
  const auto parent = nodes_.find(directory);
  if (parent == nodes_.end()) return Error(ErrorCode::kStale, "the inode is gone");
  if (!S_ISDIR(parent->second.attributes.mode)) {
    return Error(ErrorCode::kNotDirectory, "not a directory");
  }
  const auto found = parent->second.children.find(name);
  return found == parent->second.children.end() ? no_such_name() : get(found->second);
}

Result<Ino> CountingVersion::parent(Ino) { return not_offered(); }

Result<void> CountingVersion::list(Ino, std::string_view, const Visitor&) { return not_offered(); }

Result<OpenEntry> CountingVersion::create(Ino directory, std::string_view name,
                                          const NewFile& file) {
  require_name(name);
  Node& parent = directory_of(directory);
  if (parent.children.contains(name)) return Error(ErrorCode::kExists, "the name is taken");
  const auto ino = next_++;
  parent.children.emplace(name, ino);
  auto& attributes = nodes_[ino].attributes;
  attributes.mode = file.mode;
  attributes.uid = file.uid;
  attributes.gid = file.gid;
  attributes.nlink = 1;
  return OpenEntry{ino, attributes};
}

Result<OpenEntry> CountingVersion::link(Ino target, Ino directory, std::string_view name) {
  require_name(name);
  Node& parent = directory_of(directory);
  if (parent.children.contains(name)) return Error(ErrorCode::kExists, "the name is taken");
  parent.children.emplace(name, target);
  ++nodes_.at(target).attributes.nlink;
  return get(target);
}

Result<OpenEntry> CountingVersion::clone(VersionReader&, Rank, Ino, std::string_view) {
  return not_offered();
}

Result<void> CountingVersion::unlink(Ino directory, std::string_view name) {
  Node& parent = directory_of(directory);
  const auto found = parent.children.find(name);
  if (found == parent.children.end()) return no_such_name();
  Node& node = nodes_.at(found->second);
  if (S_ISDIR(node.attributes.mode)) return Error(ErrorCode::kIsDirectory, "is a directory");
  if (--node.attributes.nlink == 0) nodes_.erase(found->second);
  parent.children.erase(found);
  return {};
}

Result<void> CountingVersion::remove_directory(Ino directory, std::string_view name) {
  Node& parent = directory_of(directory);
  const auto found = parent.children.find(name);
  if (found == parent.children.end()) return no_such_name();
  if (!directory_of(found->second).children.empty()) {
    return Error(ErrorCode::kNotEmpty, "the directory has entries");
  }
  nodes_.erase(found->second);
  parent.children.erase(found);
  return {};
}

Result<void> CountingVersion::rename(Ino, std::string_view, Ino, std::string_view, RenameMode) {
  return not_offered();
}

Result<OpenEntry> CountingVersion::set_attributes(Ino ino, const AttributeChange& change) {
  const auto found = nodes_.find(ino);
  if (found == nodes_.end()) return Error(ErrorCode::kStale, "the inode is gone");
  auto& attributes = found->second.attributes;
  require(!change.mode || (*change.mode & ~07777U) == 0, "a change has permission bits only");
  require(!change.mtime || change.mtime->nanoseconds < 1'000'000'000, "a time is sound");
  require(!change.size || S_ISREG(attributes.mode), "only a file has a size");
  if (change.mode) attributes.mode = (attributes.mode & S_IFMT) | *change.mode;
  if (change.size) attributes.size = *change.size;
  return OpenEntry{ino, attributes};
}

Result<std::string> CountingVersion::read_link(Ino) { return not_offered(); }

Result<Xattrs> CountingVersion::xattrs(Ino) { return not_offered(); }

Result<void> CountingVersion::set_xattr(Ino ino, std::string_view name, std::string_view,
                                        XattrMode) {
  if (!nodes_.contains(ino)) return Error(ErrorCode::kStale, "the inode is gone");
  if (name.empty() || name.size() > 255) return Error(ErrorCode::kInvalid, "no name");
  return {};
}

Result<void> CountingVersion::remove_xattr(Ino, std::string_view) { return not_offered(); }

Result<std::unique_ptr<OpenFile>> CountingVersion::open(Ino ino, bool) {
  const auto found = nodes_.find(ino);
  if (found == nodes_.end()) return Error(ErrorCode::kStale, "the inode is gone");
  require(S_ISREG(found->second.attributes.mode), "a file is opened");
  return std::unique_ptr<OpenFile>(std::make_unique<File>(ino, found->second));
}

}  // namespace varve::fuzz
