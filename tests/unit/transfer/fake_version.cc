// SPDX-License-Identifier: Apache-2.0
#include "fake_version.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "varve/mount.h"

namespace varve::testing {
namespace {

Error not_found() { return Error(ErrorCode::kNotFound, "no such file"); }

auto place_of(FakeNode& directory, std::string_view name) {
  return std::lower_bound(directory.children.begin(), directory.children.end(), name,
                          [](const auto& child, std::string_view n) { return child.first < n; });
}

std::uint64_t data_at(const FakeNode& node, std::uint64_t offset) {
  for (const auto& [begin, end] : node.written) {
    if (offset < end) return std::max(begin, offset);
  }
  return node.attributes.size;
}

Result<std::uint64_t> next_data(const FakeNode& node, std::uint64_t offset) {
  const std::uint64_t at = data_at(node, offset);
  if (at >= node.attributes.size) return Error(ErrorCode::kPastEnd, "past the data");
  return at;
}

Result<std::uint64_t> next_hole(const FakeNode& node, std::uint64_t offset) {
  for (const auto& [begin, end] : node.written) {
    if (offset >= begin && offset < end) offset = end;
  }
  return std::min(offset, node.attributes.size);
}

std::size_t copy_out(const FakeNode& node, std::uint64_t offset, std::span<std::byte> out) {
  if (offset >= node.attributes.size) return 0;
  const std::size_t n = std::min<std::uint64_t>(out.size(), node.attributes.size - offset);
  std::memcpy(out.data(), node.data.data() + offset, n);
  return n;
}

FakeNodePtr make_node(std::uint32_t mode) {
  auto node = std::make_shared<FakeNode>();
  node->attributes.mode = mode;
  node->attributes.uid = static_cast<std::uint32_t>(::getuid());
  node->attributes.gid = static_cast<std::uint32_t>(::getgid());
  node->attributes.mtime = {1700000000, 123456789};
  return node;
}

class FakeFileReader final : public FileReader {
 public:
  explicit FakeFileReader(FakeNodePtr node) : node_(std::move(node)) {}
  /// Lends every other piece, with an odd length.
  Result<ReadBytes> read_as(const ReadRequest& request) override {
    if (request.may_lend) {
      auto lent = lend(request.offset, request.bytes);
      if (!lent.bytes.empty()) return ReadBytes{std::move(lent), {}};
    }
    VARVE_TRY_ASSIGN(const std::size_t got, copy(request.offset, request.memory(request.bytes)));
    return ReadBytes{{}, got};
  }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    return next_data(*node_, offset);
  }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
    return next_hole(*node_, offset);
  }
  std::uint64_t size() const override { return node_->attributes.size; }

 private:
  [[nodiscard]] Result<std::size_t> copy(std::uint64_t offset, std::span<std::byte> out) const {
    for (const auto& [begin, end] : node_->damaged) {
      if (offset < end && begin < offset + out.size()) {
        return Error(ErrorCode::kCorrupt, "checksum of a frame does not match");
      }
    }
    return copy_out(*node_, offset, out);
  }
  [[nodiscard]] SharedBytes lend(std::uint64_t offset, std::size_t bytes_max) {
    is_lending_ = !is_lending_;
    bytes_max = std::min<std::size_t>(bytes_max, 100'001);
    if (!is_lending_ || node_->attributes.size < bytes_max) return {};
    const auto bytes = std::make_shared<std::vector<std::byte>>(bytes_max);
    const auto got = copy(offset, *bytes);
    if (!got) return {};
    return {bytes, std::span(*bytes).first(*got)};
  }

  FakeNodePtr node_;
  bool is_lending_ = false;
};

}  // namespace

class FakeOpenFile final : public OpenFile {
 public:
  FakeOpenFile(FakeWriter& writer, FakeNodePtr node) : writer_(writer), node_(std::move(node)) {}
  Ino ino() const override { return node_->ino; }
  Result<void> write(std::uint64_t offset, std::span<const std::byte> data) override {
    VARVE_TRY(writer_.take_bytes(data.size()));
    const std::uint64_t end = offset + data.size();
    if (end > node_->data.size()) node_->data.resize(end);
    std::memcpy(node_->data.data() + offset, data.data(), data.size());
    node_->attributes.size = node_->data.size();
    node_->attributes.mode &= ~static_cast<std::uint32_t>(S_ISUID | S_ISGID);  // As write(2) does.
    node_->attributes.mtime = {1, 1};
    node_->add_written(offset, end);
    return {};
  }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> out) override {
    return copy_out(*node_, offset, out);
  }
  Result<std::uint64_t> seek_data(std::uint64_t offset) override {
    return next_data(*node_, offset);
  }
  Result<std::uint64_t> seek_hole(std::uint64_t offset) override {
    return next_hole(*node_, offset);
  }
  Result<void> allocate(std::uint64_t, std::uint64_t, AllocateMode mode) override {
    if (mode == AllocateMode::kKeepSize) return {};  // Room is only asked for.
    return Error(ErrorCode::kUnsupported, "not faked");
  }
  Result<std::uint64_t> clone_range(FileReader&, std::uint64_t, std::uint64_t,
                                    std::uint64_t) override {
    return Error(ErrorCode::kOtherVersion, "not faked");
  }
  Result<std::uint64_t> clone_range(OpenFile&, std::uint64_t, std::uint64_t,
                                    std::uint64_t) override {
    return Error(ErrorCode::kOtherVersion, "not faked");
  }
  Result<void> flush() override { return {}; }
  Result<void> sync() override { return {}; }

 private:
  FakeWriter& writer_;
  FakeNodePtr node_;
};

FakeNodePtr FakeNode::child(std::string_view name) const {
  for (const auto& [child_name, node] : children) {
    if (child_name == name) return node;
  }
  return nullptr;
}

void FakeNode::add_written(std::uint64_t begin, std::uint64_t end) {
  for (auto at = written.begin(); at != written.end();) {
    if (at->second < begin || at->first > end) {
      ++at;
      continue;
    }
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = written.erase(at);
  }
  written[begin] = end;
}

FakeNodePtr make_directory() { return make_node(S_IFDIR | 0755); }

FakeNodePtr make_file(std::string data) {
  auto node = make_node(S_IFREG | 0644);
  node->attributes.size = data.size();
  if (!data.empty()) node->add_written(0, data.size());
  node->data = std::move(data);
  return node;
}

FakeNodePtr make_symlink(std::string target) {
  auto node = make_node(S_IFLNK | 0777);
  node->attributes.size = target.size();
  node->symlink_target = std::move(target);
  return node;
}

FakeWriter::FakeWriter() {
  auto root = make_directory();
  root->ino = kRootIno;
  nodes_[kRootIno] = std::move(root);
}

void FakeWriter::fail_after(std::uint64_t bytes, ErrorCode code) {
  bytes_left_ = bytes;
  failure_ = code;
}

Result<void> FakeWriter::take_bytes(std::uint64_t bytes) {
  if (!bytes_left_) return {};
  if (*bytes_left_ < bytes) return Error(failure_, "no more bytes are taken");
  *bytes_left_ -= bytes;
  return {};
}

Result<OpenEntry> FakeWriter::get(Ino ino) {
  const auto found = nodes_.find(ino);
  if (found == nodes_.end()) return not_found();
  return OpenEntry{ino, found->second->attributes};
}

Result<OpenEntry> FakeWriter::lookup(Ino directory, std::string_view name) {
  const FakeNodePtr node = nodes_.at(directory)->child(name);
  if (!node) return not_found();
  return get(node->ino);
}

Result<Ino> FakeWriter::parent(Ino) { return not_found(); }

Result<void> FakeWriter::list(Ino directory, std::string_view after, const Visitor& visit) {
  for (const auto& [name, node] : nodes_.at(directory)->children) {
    if (name > after && !visit(name, OpenEntry{node->ino, node->attributes})) break;
  }
  return {};
}

Result<OpenEntry> FakeWriter::create(Ino directory, std::string_view name, const NewFile& file) {
  FakeNode& parent = *nodes_.at(directory);
  if (parent.child(name)) return Error(ErrorCode::kExists, "the name is taken");
  auto node = make_node(file.mode);
  node->ino = next_ino_++;
  node->attributes.uid = file.uid;
  node->attributes.gid = file.gid;
  node->attributes.rdev = file.rdev;
  node->symlink_target = file.symlink_target;
  if (S_ISLNK(file.mode)) node->attributes.size = file.symlink_target.size();
  parent.children.emplace(place_of(parent, name), name, node);
  nodes_[node->ino] = node;
  parent.attributes.mtime = {2, 2};  // As creating a file does.
  return OpenEntry{node->ino, node->attributes};
}

Result<OpenEntry> FakeWriter::link(Ino target, Ino directory, std::string_view name) {
  FakeNode& parent = *nodes_.at(directory);
  if (parent.child(name)) return Error(ErrorCode::kExists, "the name is taken");
  const FakeNodePtr node = nodes_.at(target);
  ++node->attributes.nlink;
  parent.children.emplace(place_of(parent, name), name, node);
  return OpenEntry{target, node->attributes};
}

Result<OpenEntry> FakeWriter::clone(VersionReader&, Rank, Ino, std::string_view) {
  return Error(ErrorCode::kOtherVersion, "not faked");
}

Result<void> FakeWriter::unlink(Ino directory, std::string_view name) {
  FakeNode& parent = *nodes_.at(directory);
  const FakeNodePtr node = parent.child(name);
  if (!node) return not_found();
  if (S_ISDIR(node->attributes.mode)) return Error(ErrorCode::kIsDirectory, "is a directory");
  --node->attributes.nlink;
  parent.children.erase(place_of(parent, name));
  return {};
}

Result<void> FakeWriter::remove_directory(Ino directory, std::string_view name) {
  FakeNode& parent = *nodes_.at(directory);
  const FakeNodePtr node = parent.child(name);
  if (!node) return not_found();
  if (!node->children.empty()) return Error(ErrorCode::kNotEmpty, "directory is not empty");
  parent.children.erase(place_of(parent, name));
  return {};
}

Result<void> FakeWriter::rename(Ino, std::string_view, Ino, std::string_view, RenameMode) {
  return Error(ErrorCode::kNotPermitted, "no transfer renames");
}

Result<OpenEntry> FakeWriter::set_attributes(Ino ino, const AttributeChange& change) {
  FakeNode& node = *nodes_.at(ino);
  Attributes& a = node.attributes;
  if (change.mode) a.mode = (a.mode & S_IFMT) | *change.mode;
  if (change.uid) a.uid = *change.uid;
  if (change.gid) a.gid = *change.gid;
  if (change.size) {
    a.size = *change.size;
    node.data.resize(a.size);
  }
  if (change.mtime) a.mtime = *change.mtime;
  return OpenEntry{ino, a};
}

Result<std::string> FakeWriter::read_link(Ino ino) { return nodes_.at(ino)->symlink_target; }

Result<Xattrs> FakeWriter::xattrs(Ino ino) { return nodes_.at(ino)->xattrs; }

Result<void> FakeWriter::set_xattr(Ino ino, std::string_view name, std::string_view value,
                                   XattrMode) {
  nodes_.at(ino)->xattrs.push_back(Xattr{std::string(name), std::string(value)});
  return {};
}

Result<void> FakeWriter::remove_xattr(Ino, std::string_view) { return not_found(); }

Result<std::unique_ptr<OpenFile>> FakeWriter::open(Ino ino, bool) {
  return std::unique_ptr<OpenFile>(std::make_unique<FakeOpenFile>(*this, nodes_.at(ino)));
}

FakeReader::FakeReader(FakeNodePtr root) {
  // Walks depth first without recursion, because some test trees are deep.
  struct Pending {
    FakeNodePtr node;
    std::string name;
    Rank parent;
  };
  std::vector<Pending> pending{{std::move(root), "", 0}};
  while (!pending.empty()) {
    Pending next = std::move(pending.back());
    pending.pop_back();
    const Rank rank = entries_.size();
    if (rank > 0) entries_[next.parent].children.push_back(rank);
    ++names_[next.node.get()];
    const auto& children = next.node->children;
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      pending.push_back({child->second, child->first, rank});
    }
    entries_.push_back({std::move(next.node), std::move(next.name), next.parent, {}});
  }
}

SealedEntry FakeReader::sealed(Rank rank) const {
  const FakeNodePtr& node = entries_[rank].node;
  SealedEntry entry{rank, node->attributes, 0};
  if (names_.at(node.get()) > 1) {
    entry.attributes.nlink = static_cast<std::uint32_t>(names_.at(node.get()));
    entry.link_group = reinterpret_cast<std::uintptr_t>(node.get());
  }
  return entry;
}

Result<SealedEntry> FakeReader::get(Rank rank) { return sealed(rank); }

Result<SealedEntry> FakeReader::lookup(Rank directory, std::string_view name) {
  for (const Rank child : entries_[directory].children) {
    if (entries_[child].name == name) return sealed(child);
  }
  return not_found();
}

Result<Rank> FakeReader::parent(Rank rank) { return entries_[rank].parent; }

Result<void> FakeReader::list(Rank directory, std::uint64_t after, const Visitor& visit) {
  const std::vector<Rank>& children = entries_[directory].children;
  for (std::uint64_t at = after; at < children.size(); ++at) {
    if (!visit(at + 1, entries_[children[at]].name, sealed(children[at]))) break;
  }
  return {};
}

Result<std::string> FakeReader::read_link(Rank rank) { return entries_[rank].node->symlink_target; }

Result<Xattrs> FakeReader::xattrs(Rank rank) { return entries_[rank].node->xattrs; }

Result<std::shared_ptr<FileReader>> FakeReader::open(Rank rank) {
  opened_.push_back(rank);
  return std::shared_ptr<FileReader>(std::make_shared<FakeFileReader>(entries_[rank].node));
}

// Locates pieces of 1000 bytes, each in its own container, in scattered places.
Result<void> FakeReader::locate_data(Rank rank, std::uint64_t offset, const PieceVisitor& visit) {
  constexpr std::uint64_t kPieceBytes = 1000;
  unsigned visited = 0;
  for (const auto& [begin, end] : entries_[rank].node->written) {
    for (std::uint64_t at = begin; at < end; at += kPieceBytes) {
      if (at < offset) continue;
      if (lost_places_of_ == rank && visited++ > 0) return Error(ErrorCode::kCorrupt, "lost");
      StoredPiece piece;
      piece.place = ((rank << 32 | at) * 0x9e3779b97f4a7c15ULL) >> 8;
      piece.first.value = rank;
      piece.offset = at;
      piece.bytes = static_cast<std::uint32_t>(std::min(kPieceBytes, end - at));
      if (!visit(piece)) return {};
    }
  }
  return {};
}

void FakeReader::read_pieces(std::span<const StoredPiece> pieces, const PieceTaker& take) {
  for (const StoredPiece& piece : pieces) {
    read_places_.push_back(piece.place);
    const FakeNode& node = *entries_[piece.first.value].node;
    const std::uint64_t end = piece.offset + piece.bytes;
    const bool damaged = std::ranges::any_of(node.damaged, [&](const auto& range) {
      return range.first < end && range.second > piece.offset;
    });
    const auto data = std::as_bytes(std::span(node.data)).subspan(piece.offset, piece.bytes);
    if (!take(piece, piece.offset, piece.bytes, damaged ? nullptr : data.data())) return;
  }
}

}  // namespace varve::testing
