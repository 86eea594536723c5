// SPDX-License-Identifier: Apache-2.0
// An open version under a random stream of operations, held against a model in memory.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/temp_repository.h"
#include "tree_model.h"
#include "varve/backup.h"

namespace varve::test {

struct Setting {
  const char* name;
  Codec codec;
  std::uint64_t seed;
  std::uint32_t checkpoint_interval_ms;
  bool encrypted = false;
};

class OpenVersionModel : public testing::TestWithParam<Setting> {
 protected:
  struct Handle {
    NodePtr node;
    std::unique_ptr<OpenFile> file;
    bool writable = false;
  };

  OpenVersionModel() : random_(seed()), path_(directory_.path() + "/repository") {
    for (std::size_t i = 0; i < 64; ++i) blocks_.push_back(noise(6000, i));
    must(Repository::create(path_, small_chunks(GetParam().codec),
                            GetParam().encrypted ? encrypted() : CreateOptions()));
    open_repository();
    series_ = must(repository_->create_series("s")).id;
  }

  static std::uint64_t seed() {
    const char* other = std::getenv("VARVE_TEST_SEED");
    return GetParam().seed + (other != nullptr ? std::strtoull(other, nullptr, 10) : 0);
  }

  void open_repository() {
    auto options = quiet_options();
    options.checkpoint_interval_ms = GetParam().checkpoint_interval_ms;
    repository_ = reopen(path_, GetParam().encrypted ? with_key(options) : options);
  }

  void start_version(const std::string& name) {
    const auto info = must(repository_->open_version(series_, name, folder()));
    number_ = info.number;
    version_ = must(repository_->writer(series_));
    root_ = std::make_shared<Node>();
    root_->ino = kRootIno;
    root_->mode = S_IFDIR | 0755;
    root_->parent = root_.get();
    directories_ = {root_};
    others_.clear();
  }

  // The version was opened as a clone of the one that the model shows.
  void go_on_from_sealed(VersionNumber number) {
    number_ = number;
    version_ = must(repository_->writer(series_));
    directories_.clear();
    others_.clear();
    root_ = copy_model(*version_, *root_, directories_, others_);
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::string name() { return "n" + std::to_string(below(60)); }
  NodePtr directory() { return directories_[below(directories_.size())]; }
  NodePtr other() { return others_.empty() ? nullptr : others_[below(others_.size())]; }
  NodePtr file() {
    for (int i = 0; i < 20; ++i) {
      auto node = other();
      if (node && node->is_regular()) return node;
    }
    return nullptr;
  }

  // Blocks of a small stock, so that chunks repeat within and between files.
  std::string bytes() {
    std::string out;
    const std::size_t size = 1 + below(below(4) == 0 ? 120000 : 9000);
    while (out.size() < size) out += blocks_[below(blocks_.size())];
    out.resize(size);
    return out;
  }

  void forget(const NodePtr& node) {
    std::erase(node->is_directory() ? directories_ : others_, node);
  }
  void take_name(Node& parent, const std::string& child) {
    const auto node = parent.children.at(child);
    parent.children.erase(child);
    parent.mtime.reset();
    if (--node->nlink == 0) forget(node);
  }
  static void overwrite(Node& node, std::size_t offset, const std::string& data) {
    if (node.content.size() < offset + data.size()) node.content.resize(offset + data.size());
    node.content.replace(offset, data.size(), data);
    node.mtime.reset();
  }

  void create_one() {
    const auto parent = directory();
    const auto child = name();
    NewFile file;
    static constexpr std::uint32_t kTypes[] = {S_IFREG, S_IFREG, S_IFREG, S_IFREG,
                                               S_IFDIR, S_IFLNK, S_IFIFO, S_IFCHR};
    file.mode = kTypes[below(std::size(kTypes))] | static_cast<std::uint32_t>(below(01000));
    file.uid = static_cast<std::uint32_t>(below(70000));
    file.gid = static_cast<std::uint32_t>(below(70000));
    if ((file.mode & S_IFMT) == S_IFLNK) file.symlink_target = "to/" + name();
    if ((file.mode & S_IFMT) == S_IFCHR) file.rdev = below(1000);
    const auto made = version_->create(parent->ino, child, file);
    if (parent->children.contains(child)) {
      ASSERT_EQ(code_of(made), ErrorCode::kExists);
      return;
    }
    ASSERT_TRUE(made) << made.error().message();
    auto node = std::make_shared<Node>();
    node->ino = made->ino;
    node->mode = file.mode;
    node->uid = file.uid;
    node->gid = file.gid;
    node->rdev = file.rdev;
    node->target = file.symlink_target;
    node->parent = parent.get();
    parent->children[child] = node;
    parent->mtime.reset();
    (node->is_directory() ? directories_ : others_).push_back(node);
    if (node->is_regular() && below(4) != 0) {
      const auto data = bytes();
      const auto handle = must(version_->open(node->ino, true));
      for (std::size_t at = 0; at < data.size();) {
        const auto part = std::min(data.size() - at, 1 + below(40000));
        must(handle->write(at, base::as_bytes(std::string_view(data).substr(at, part))));
        at += part;
      }
      overwrite(*node, 0, data);
    }
  }

  void open_one() {
    if (handles_.size() >= 8) {
      handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(below(handles_.size())));
      return;
    }
    const auto node = file();
    if (!node) return;
    const bool writable = below(3) != 0;
    handles_.push_back({node, must(version_->open(node->ino, writable)), writable});
  }

  void write_one() {
    if (handles_.empty()) return;
    auto& handle = handles_[below(handles_.size())];
    auto& node = *handle.node;
    const auto data = bytes();
    std::size_t offset = node.content.size();  // Mostly at the end.
    if (below(3) == 0) offset = below(node.content.size() + 1);
    if (below(10) == 0) offset = node.content.size() + below(50000);
    if (offset > 400000) offset = 0;
    const auto done = handle.file->write(offset, base::as_bytes(data));
    if (!handle.writable) {
      ASSERT_EQ(code_of(done), ErrorCode::kBadHandle);
      return;
    }
    ASSERT_TRUE(done) << done.error().message();
    overwrite(node, offset, data);
  }

  void read_one() {
    std::unique_ptr<OpenFile> own;
    NodePtr node = file();
    OpenFile* from = nullptr;
    if (!handles_.empty() && below(2) == 0) {
      auto& handle = handles_[below(handles_.size())];
      node = handle.node;
      from = handle.file.get();
    } else if (node) {
      own = must(version_->open(node->ino, false));
      from = own.get();
    }
    if (from == nullptr) return;
    const std::size_t offset = below(node->content.size() + 100);
    std::string out(1 + below(100000), '\0');
    out.resize(must(from->read(offset, std::as_writable_bytes(std::span(out.data(), out.size())))));
    const auto wanted = offset < node->content.size()
                            ? node->content.substr(offset, std::max<std::size_t>(out.size(), 1))
                            : std::string();
    ASSERT_TRUE(out == wanted) << "ino " << node->ino << " at " << offset;
  }

  void truncate_one() {
    const auto node = file();
    if (!node) return;
    AttributeChange change;
    const std::size_t size = node->content.size();
    switch (below(4)) {
      case 0:
        change.size = 0;
        break;
      case 1:
        change.size = size + below(100000);
        break;
      default:
        change.size = below(size + 1);
        break;
    }
    if (*change.size > 500000) change.size = 17;
    must(version_->set_attributes(node->ino, change));
    node->content.resize(*change.size);
    node->mtime.reset();
  }

  void change_attributes() {
    const auto node = below(2) == 0 ? directory() : other();
    if (!node) return;
    AttributeChange change;
    if (below(2) == 0) {
      change.mode = static_cast<std::uint32_t>(below(01000));
      node->mode = (node->mode & S_IFMT) | *change.mode;
    }
    if (below(2) == 0) change.uid = node->uid = static_cast<std::uint32_t>(below(70000));
    if (below(2) == 0) change.gid = node->gid = static_cast<std::uint32_t>(below(70000));
    if (below(2) == 0) {
      change.mtime = Timestamp{static_cast<std::int64_t>(below(2000000000)) - 1000,
                               static_cast<std::uint32_t>(below(1000000000))};
      node->mtime = change.mtime;
    }
    must(version_->set_attributes(node->ino, change));
  }

  void change_xattr() {
    const auto node = below(2) == 0 ? directory() : other();
    if (!node) return;
    const std::string key = "user.k" + std::to_string(below(4));
    const bool present = node->xattrs.contains(key);
    if (below(3) == 0) {
      const auto done = version_->remove_xattr(node->ino, key);
      ASSERT_EQ(done.has_value(), present);
      if (!present) {
        ASSERT_EQ(code_of(done), ErrorCode::kNoAttribute);
      }
      node->xattrs.erase(key);
      return;
    }
    const auto mode = static_cast<XattrMode>(below(3));
    const auto value = noise(below(300), random_());
    const auto done = version_->set_xattr(node->ino, key, value, mode);
    if (mode == XattrMode::kCreate && present) {
      ASSERT_EQ(code_of(done), ErrorCode::kExists);
    } else if (mode == XattrMode::kReplace && !present) {
      ASSERT_EQ(code_of(done), ErrorCode::kNoAttribute);
    } else {
      ASSERT_TRUE(done);
      node->xattrs[key] = value;
    }
  }

  void link_one() {
    const auto node = other();
    if (!node) return;
    const auto parent = directory();
    const auto child = name();
    const auto done = version_->link(node->ino, parent->ino, child);
    if (parent->children.contains(child)) {
      ASSERT_EQ(code_of(done), ErrorCode::kExists);
      return;
    }
    ASSERT_TRUE(done) << done.error().message();
    parent->children[child] = node;
    parent->mtime.reset();
    ++node->nlink;
  }

  void remove_one() {
    const auto parent = directory();
    auto child = name();
    if (!parent->children.empty() && below(4) != 0) {
      child = std::next(parent->children.begin(),
                        static_cast<std::ptrdiff_t>(below(parent->children.size())))
                  ->first;
    }
    const bool as_directory = below(3) == 0;
    const auto done = as_directory ? version_->remove_directory(parent->ino, child)
                                   : version_->unlink(parent->ino, child);
    const auto it = parent->children.find(child);
    if (it == parent->children.end()) {
      ASSERT_EQ(code_of(done), ErrorCode::kNotFound);
      return;
    }
    const auto& node = *it->second;
    if (as_directory && !node.is_directory()) {
      ASSERT_EQ(code_of(done), ErrorCode::kNotDirectory);
    } else if (as_directory && !node.children.empty()) {
      ASSERT_EQ(code_of(done), ErrorCode::kNotEmpty);
    } else if (!as_directory && node.is_directory()) {
      ASSERT_EQ(code_of(done), ErrorCode::kIsDirectory);
    } else {
      ASSERT_TRUE(done) << done.error().message();
      take_name(*parent, child);
    }
  }

  static bool is_below(const Node* at, const Node* top) {
    for (;; at = at->parent) {
      if (at == top) return true;
      if (at->parent == at) return false;
    }
  }

  std::optional<ErrorCode> rename_error(const Node& from, const std::string& a, const Node& to,
                                        const std::string& b, RenameMode mode) {
    const auto moved = from.children.find(a);
    if (moved == from.children.end()) return ErrorCode::kNotFound;
    const auto target = to.children.find(b);
    const Node& node = *moved->second;
    const Node* other_node = target == to.children.end() ? nullptr : target->second.get();
    if (mode == RenameMode::kExchange) {
      if (other_node == nullptr) return ErrorCode::kNotFound;
      if (node.is_directory() && is_below(&to, &node)) return ErrorCode::kInvalid;
      if (other_node->is_directory() && is_below(&from, other_node)) return ErrorCode::kInvalid;
      return std::nullopt;
    }
    if (other_node != nullptr && mode == RenameMode::kNoReplace) return ErrorCode::kExists;
    if (other_node == &node) return std::nullopt;
    if (node.is_directory() && is_below(&to, &node)) return ErrorCode::kInvalid;
    if (other_node == nullptr) return std::nullopt;
    if (node.is_directory() && !other_node->is_directory()) return ErrorCode::kNotDirectory;
    if (!node.is_directory() && other_node->is_directory()) return ErrorCode::kIsDirectory;
    if (!other_node->children.empty()) return ErrorCode::kNotEmpty;
    return std::nullopt;
  }

  void rename_one() {
    const auto from = directory();
    const auto to = below(3) == 0 ? from : directory();
    auto a = name();
    const auto b = name();
    if (!from->children.empty() && below(5) != 0) {
      a = std::next(from->children.begin(),
                    static_cast<std::ptrdiff_t>(below(from->children.size())))
              ->first;
    }
    const auto mode = static_cast<RenameMode>(below(3));
    const auto wanted = rename_error(*from, a, *to, b, mode);
    const auto done = version_->rename(from->ino, a, to->ino, b, mode);
    if (wanted) {
      ASSERT_EQ(code_of(done), *wanted);
      return;
    }
    ASSERT_TRUE(done) << done.error().message();
    const auto node = from->children.at(a);
    if (mode == RenameMode::kExchange) {
      std::swap(from->children.at(a), to->children.at(b));
      auto& other_node = from->children.at(a);
      if (node->is_directory()) node->parent = to.get();
      if (other_node->is_directory()) other_node->parent = from.get();
    } else {
      if (to->children.contains(b) && to->children.at(b) == node) return;
      if (to->children.contains(b)) take_name(*to, b);
      from->children.erase(a);
      to->children[b] = node;
      if (node->is_directory()) node->parent = to.get();
    }
    from->mtime.reset();
    to->mtime.reset();
  }

  // Destroys everything in memory and comes back from the disk, orderly or as after a crash.
  void restart() {
    std::erase_if(handles_, [](const Handle& handle) { return handle.node->nlink == 0; });
    const bool crash = GetParam().checkpoint_interval_ms > 1000000 && below(2) == 0;
    if (crash) {
      must(version_->sync());
      copy_crashed(path_, path_ + "-crashed");
    }
    handles_.clear();
    version_.reset();
    if (!crash) must(repository_->close());
    repository_.reset();
    if (crash) {
      std::filesystem::remove_all(path_);
      std::filesystem::rename(path_ + "-crashed", path_);
    }
    open_repository();
    version_ = must(repository_->writer(series_));
  }

  void step() {
    const auto what = below(1000);
    if (what < 250) return create_one();
    if (what < 350) return open_one();
    if (what < 560) return write_one();
    if (what < 640) return read_one();
    if (what < 700) return truncate_one();
    if (what < 750) return change_attributes();
    if (what < 790) return change_xattr();
    if (what < 840) return link_one();
    if (what < 910) return remove_one();
    if (what < 980) return rename_one();
    if (what < 990) return must(version_->sync());
    if (what < 996 && !handles_.empty()) return must(handles_[0].file->sync());
    restart();
  }

  SealOutcome seal(const std::string& as, SealMode mode = SealMode::kEnd) {
    if (!handles_.empty()) {
      const bool writing = std::any_of(handles_.begin(), handles_.end(),
                                       [](const Handle& handle) { return handle.writable; });
      if (writing) {
        EXPECT_EQ(code_of(repository_->seal(series_, number_, as)), ErrorCode::kBusy);
      }
      handles_.clear();
    }
    version_.reset();
    return must(repository_->seal(series_, number_, as, mode));
  }

  std::mt19937_64 random_;
  TempDirectory directory_;
  std::string path_;
  std::vector<std::string> blocks_;
  std::unique_ptr<Repository> repository_;
  SeriesId series_{};
  VersionNumber number_{};
  std::shared_ptr<VersionWriter> version_;
  NodePtr root_;
  std::vector<NodePtr> directories_;
  std::vector<NodePtr> others_;
  std::vector<Handle> handles_;
};

}  // namespace varve::test
