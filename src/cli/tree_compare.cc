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

using Sink = std::function<bool(const TreeChange&)>;

bool is_directory(const SealedEntry& entry) { return S_ISDIR(entry.attributes.mode); }

bool of_one_series(const EntryAt& before, const EntryAt& after) {
  return before.reader.info().series == after.reader.info().series;
}

/// Returns true if one series stores both directories as the same, including all entries below.
bool same_below(const EntryAt& before, const EntryAt& after) {
  return before.entry.content_id != 0 && before.entry.content_id == after.entry.content_id &&
         of_one_series(before, after);
}

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

/// Compares two files of one series by chunks. False does not mean different bytes.
Result<bool> same_chunks(const EntryAt& before, const EntryAt& after) {
  bool same = true;
  const auto listed = after.reader.list_changes(after.entry.rank, &before.reader, before.entry.rank,
                                                [&](const FileRange&) { return same = false; });
  if (!listed && listed.error().code() == ErrorCode::kUnsupported) return false;
  if (!listed) return listed.error();
  return same;
}

Result<bool> same_content(const EntryAt& before, const EntryAt& after, DataCheck check) {
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
  if (check != DataCheck::kRead) {
    if (a.mtime == b.mtime) return true;
    if (of_one_series(before, after)) {
      VARVE_TRY_ASSIGN(const bool same, same_chunks(before, after));
      if (same || check == DataCheck::kStored) return same;
    }
  }
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
  /// Returns the next entry; null behind the last entry. Lifetime: until next().
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

/// Two directories of one name; one directory may be missing.
struct Level {
  std::optional<DirectoryCursor> before;
  std::optional<DirectoryCursor> after;
  std::size_t path_length = 0;
  std::string behind{};  ///< Path of the last name to skip, below the directory; "" = skip none.
};

class Walk {
 public:
  Walk(const TreeComparison& comparison, const Sink& sink)
      : comparison_(comparison), sink_(sink), path_(comparison.path) {}

  Result<ComparedTrees> run(const EntryAt* before, const EntryAt* after) {
    if (comparison_.behind) {
      std::string_view rest = *comparison_.behind;
      rest.remove_prefix(std::min(rest.size(), path_.size()));
      if (rest.starts_with('/')) rest.remove_prefix(1);
      enter(before, after, rest);
    } else {
      VARVE_TRY(visit(before, after));
    }
    while (!levels_.empty()) {
      if (!goes_on_ || compared_.names >= comparison_.names_max) {
        compared_.stopped = path_;
        break;
      }
      VARVE_TRY(step());
    }
    return std::move(compared_);
  }

 private:
  struct Pair {
    std::optional<EntryAt> before;
    std::optional<EntryAt> after;
  };
  template <typename Use>
  static auto use(const Pair& pair, const Use& with) {
    return with(pair.before ? &*pair.before : nullptr, pair.after ? &*pair.after : nullptr);
  }

  Result<void> step() {
    Level& level = levels_.back();
    path_.resize(level.path_length);
    const std::string behind = std::exchange(level.behind, {});
    if (!behind.empty()) return skip(level, behind);
    VARVE_TRY_ASSIGN(const Pair pair, take(level));
    if (!pair.before && !pair.after) {
      levels_.pop_back();
      return {};
    }
    return use(
        pair, [this](const EntryAt* before, const EntryAt* after) { return visit(before, after); });
  }

  /// Takes the first name of both sides, and appends the name to path_. A side without the name
  /// waits.
  Result<Pair> take(Level& level) {
    DirectoryCursor::Item* left = nullptr;
    DirectoryCursor::Item* right = nullptr;
    if (level.before) {
      VARVE_TRY_ASSIGN(left, level.before->peek());
    }
    if (level.after) {
      VARVE_TRY_ASSIGN(right, level.after->peek());
    }
    Pair pair;
    if (left == nullptr && right == nullptr) return pair;
    if (left != nullptr && right != nullptr && left->name != right->name) {
      (left->name < right->name ? right : left) = nullptr;
    }
    if (!path_.empty()) path_ += '/';
    path_ += left != nullptr ? left->name : right->name;
    if (left != nullptr) {
      pair.before.emplace(EntryAt{level.before->reader(), left->entry});
      level.before->next();
    }
    if (right != nullptr) {
      pair.after.emplace(EntryAt{level.after->reader(), right->entry});
      level.after->next();
    }
    return pair;
  }

  /// Skips the names of a directory before the first component of `behind`, and enters the entry
  /// with the component's name.
  Result<void> skip(Level& level, std::string_view behind) {
    const std::string_view name = behind.substr(0, behind.find('/'));
    for (auto* side : {&level.before, &level.after}) {
      while (*side) {
        VARVE_TRY_ASSIGN(const auto* const item, (*side)->peek());
        if (item == nullptr || item->name >= name) break;
        (*side)->next();
      }
    }
    const auto is_next = [&](std::optional<DirectoryCursor>& side) -> Result<bool> {
      if (!side) return false;
      VARVE_TRY_ASSIGN(const auto* const item, side->peek());
      return item != nullptr && item->name == name;
    };
    VARVE_TRY_ASSIGN(const bool left, is_next(level.before));
    VARVE_TRY_ASSIGN(const bool right, is_next(level.after));
    if (!left && !right) return {};
    VARVE_TRY_ASSIGN(const Pair pair, take(level));
    behind.remove_prefix(std::min(name.size() + 1, behind.size()));
    use(pair, [&](const EntryAt* before, const EntryAt* after) { enter(before, after, behind); });
    return {};
  }

  /// Reports the entry at path_, and enters the entry.
  Result<void> visit(const EntryAt* before, const EntryAt* after) {
    ++compared_.names;
    if (before != nullptr && after != nullptr && same_type(before->entry, after->entry)) {
      if (!comparison_.added_only) {
        VARVE_TRY_ASSIGN(const Difference difference,
                         compare_entries(*before, *after, comparison_.check));
        if (difference == Difference::kContent) tell(TreeChange::Kind::kContent, after->entry);
        if (difference == Difference::kMetadata) tell(TreeChange::Kind::kMetadata, after->entry);
      }
    } else {
      if (before != nullptr && !comparison_.added_only) {
        tell(TreeChange::Kind::kRemoved, before->entry);
      }
      if (after != nullptr) tell(TreeChange::Kind::kAdded, after->entry);
    }
    enter(before, after, {});
    return {};
  }

  /// Enters the directories at path_, at the names behind `behind`.
  void enter(const EntryAt* before, const EntryAt* after, std::string_view behind) {
    if (before != nullptr && after != nullptr && same_below(*before, *after)) return;
    if (after == nullptr && comparison_.added_only) return;
    Level level;
    level.path_length = path_.size();
    level.behind = behind;
    if (before != nullptr && is_directory(before->entry)) {
      level.before.emplace(before->reader, before->entry.rank);
    }
    if (after != nullptr && is_directory(after->entry)) {
      level.after.emplace(after->reader, after->entry.rank);
    }
    if (level.before || level.after) levels_.push_back(std::move(level));
  }

  // An entry of changed type is reported twice: a stop after the first report waits for the second.
  void tell(TreeChange::Kind kind, const SealedEntry& entry) {
    if (!sink_({kind, path_, entry})) goes_on_ = false;
  }

  const TreeComparison& comparison_;
  const Sink& sink_;
  std::string path_;
  std::vector<Level> levels_;
  bool goes_on_ = true;
  ComparedTrees compared_;
};

}  // namespace

Result<Difference> compare_entries(const EntryAt& before, const EntryAt& after, DataCheck check) {
  VARVE_TRY_ASSIGN(const bool same, same_content(before, after, check));
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

Result<ComparedTrees> compare_trees(const EntryAt* before, const EntryAt* after,
                                    const TreeComparison& comparison, const Sink& sink) {
  return Walk(comparison, sink).run(before, after);
}

}  // namespace varve::cli
