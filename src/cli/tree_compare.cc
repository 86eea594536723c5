// SPDX-License-Identifier: Apache-2.0
#include "cli/tree_compare.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace varve::cli {
namespace {

constexpr std::size_t kCompareBatch = 512;
constexpr std::size_t kCompareBytes = 1 << 20;

using Sink = std::function<void(const TreeChange&)>;

bool is_directory(const SealedEntry& entry) { return S_ISDIR(entry.attributes.mode); }

bool same_type(const SealedEntry& a, const SealedEntry& b) {
  return (a.attributes.mode & S_IFMT) == (b.attributes.mode & S_IFMT);
}

Result<bool> same_bytes(const EntryAt& before, const EntryAt& after) {
  VARVE_TRY_ASSIGN(const auto left, before.reader.open(before.entry.rank));
  VARVE_TRY_ASSIGN(const auto right, after.reader.open(after.entry.rank));
  std::vector<std::byte> left_bytes(kCompareBytes);
  std::vector<std::byte> right_bytes(kCompareBytes);
  for (std::uint64_t at = 0;;) {
    VARVE_TRY_ASSIGN(const std::size_t got, left->read(at, left_bytes));
    VARVE_TRY_ASSIGN(const std::size_t also, right->read(at, right_bytes));
    const auto end = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
    if (!std::equal(left_bytes.begin(), left_bytes.begin() + end(got), right_bytes.begin(),
                    right_bytes.begin() + end(also))) {
      return false;
    }
    if (got < kCompareBytes) return true;
    at += got;
  }
}

Result<bool> same_content(const EntryAt& before, const EntryAt& after, bool read_data) {
  const Attributes& a = before.entry.attributes;
  const Attributes& b = after.entry.attributes;
  if (S_ISLNK(a.mode)) {
    VARVE_TRY_ASSIGN(const std::string left, before.reader.read_link(before.entry.rank));
    VARVE_TRY_ASSIGN(const std::string right, after.reader.read_link(after.entry.rank));
    return left == right;
  }
  if (S_ISBLK(a.mode) || S_ISCHR(a.mode)) return a.rdev == b.rdev;
  if (!S_ISREG(a.mode)) return true;
  if (a.size != b.size) return false;
  if (a.mtime == b.mtime && !read_data) return true;
  return same_bytes(before, after);
}

/// The entries of one directory in name order, a batch at a time.
class DirectoryCursor {
 public:
  struct Item {
    std::string name;
    SealedEntry entry;
  };

  DirectoryCursor(VersionReader& reader, Rank directory) : reader_(&reader), rank_(directory) {}

  [[nodiscard]] VersionReader& reader() const { return *reader_; }
  /// Null behind the last one. Good until next().
  [[nodiscard]] Result<Item*> peek() {
    if (next_ == batch_.size() && !at_end_) VARVE_TRY(fill());
    return next_ == batch_.size() ? nullptr : &batch_[next_];
  }
  void next() { ++next_; }

 private:
  Result<void> fill() {
    batch_.clear();
    next_ = 0;
    VARVE_TRY(reader_->list(
        rank_, position_,
        [this](std::uint64_t position, std::string_view name, const SealedEntry& entry) {
          batch_.push_back({std::string(name), entry});
          position_ = position;
          return batch_.size() < kCompareBatch;
        }));
    at_end_ = batch_.size() < kCompareBatch;
    return {};
  }

  VersionReader* reader_;
  Rank rank_;
  std::uint64_t position_ = 0;
  std::vector<Item> batch_;
  std::size_t next_ = 0;
  bool at_end_ = false;
};

/// Two directories of one name; one of them may be missing.
struct Level {
  std::optional<DirectoryCursor> before;
  std::optional<DirectoryCursor> after;
  std::size_t path_length = 0;
};

class Walk {
 public:
  Walk(bool read_data, const Sink& sink) : read_data_(read_data), sink_(sink) {}

  /// Both, or one, may be there.
  Result<void> run(const EntryAt* before, const EntryAt* after, const std::string& path) {
    path_ = path;
    VARVE_TRY(visit(before, after));
    while (!levels_.empty()) VARVE_TRY(step());
    return {};
  }

 private:
  Result<void> step() {
    Level& level = levels_.back();
    path_.resize(level.path_length);
    DirectoryCursor::Item* left = nullptr;
    DirectoryCursor::Item* right = nullptr;
    if (level.before) {
      VARVE_TRY_ASSIGN(left, level.before->peek());
    }
    if (level.after) {
      VARVE_TRY_ASSIGN(right, level.after->peek());
    }
    if (left == nullptr && right == nullptr) {
      levels_.pop_back();
      return {};
    }
    // Visits the name that comes first; the other side waits for its turn.
    if (left != nullptr && right != nullptr && left->name != right->name) {
      (left->name < right->name ? right : left) = nullptr;
    }
    if (!path_.empty()) path_ += '/';
    path_ += left != nullptr ? left->name : right->name;
    std::optional<EntryAt> before;
    std::optional<EntryAt> after;
    if (left != nullptr) {
      before.emplace(EntryAt{level.before->reader(), left->entry});
      level.before->next();
    }
    if (right != nullptr) {
      after.emplace(EntryAt{level.after->reader(), right->entry});
      level.after->next();
    }
    return visit(before ? &*before : nullptr, after ? &*after : nullptr);
  }

  /// Tells of the entry at path_, and goes into it.
  Result<void> visit(const EntryAt* before, const EntryAt* after) {
    if (before != nullptr && after != nullptr && same_type(before->entry, after->entry)) {
      VARVE_TRY_ASSIGN(const Difference difference, compare_entries(*before, *after, read_data_));
      if (difference == Difference::kContent) tell(TreeChange::Kind::kContent, after->entry);
      if (difference == Difference::kMetadata) tell(TreeChange::Kind::kMetadata, after->entry);
    } else {
      if (before != nullptr) tell(TreeChange::Kind::kRemoved, before->entry);
      if (after != nullptr) tell(TreeChange::Kind::kAdded, after->entry);
    }
    Level level;
    level.path_length = path_.size();
    if (before != nullptr && is_directory(before->entry)) {
      level.before.emplace(before->reader, before->entry.rank);
    }
    if (after != nullptr && is_directory(after->entry)) {
      level.after.emplace(after->reader, after->entry.rank);
    }
    if (level.before || level.after) levels_.push_back(std::move(level));
    return {};
  }

  void tell(TreeChange::Kind kind, const SealedEntry& entry) { sink_({kind, path_, entry}); }

  const bool read_data_;
  const Sink& sink_;
  std::string path_;
  std::vector<Level> levels_;
};

}  // namespace

Result<Difference> compare_entries(const EntryAt& before, const EntryAt& after, bool read_data) {
  VARVE_TRY_ASSIGN(const bool same, same_content(before, after, read_data));
  if (!same) return Difference::kContent;
  const Attributes& a = before.entry.attributes;
  const Attributes& b = after.entry.attributes;
  if (a.mode != b.mode || a.uid != b.uid || a.gid != b.gid || a.mtime != b.mtime) {
    return Difference::kMetadata;
  }
  VARVE_TRY_ASSIGN(const Xattrs left, before.reader.xattrs(before.entry.rank));
  VARVE_TRY_ASSIGN(const Xattrs right, after.reader.xattrs(after.entry.rank));
  return left == right ? Difference::kNone : Difference::kMetadata;
}

Result<SealedEntry> find_entry(VersionReader& reader, std::string_view path) {
  VARVE_TRY_ASSIGN(SealedEntry entry, reader.get(0));
  while (!path.empty()) {
    const std::size_t length = std::min(path.find('/'), path.size());
    if (!is_directory(entry)) return Error(ErrorCode::kNotFound, "not a directory");
    VARVE_TRY_ASSIGN(entry, reader.lookup(entry.rank, path.substr(0, length)));
    path.remove_prefix(std::min(length + 1, path.size()));
  }
  return entry;
}

Result<void> compare_trees(const EntryAt& before, const EntryAt& after, const std::string& path,
                           bool read_data, const Sink& sink) {
  return Walk(read_data, sink).run(&before, &after, path);
}

Result<void> list_tree(const EntryAt& root, const std::string& path, TreeChange::Kind kind,
                       const Sink& sink) {
  const bool removed = kind == TreeChange::Kind::kRemoved;
  return Walk(false, sink).run(removed ? &root : nullptr, removed ? nullptr : &root, path);
}

}  // namespace varve::cli
