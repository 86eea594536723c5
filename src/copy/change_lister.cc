// SPDX-License-Identifier: Apache-2.0
// Hard links: if any name of a file changed in any way, the file is made again under the first name
// found by the walk, and all remaining names of the file become links at the end. So a write
// through a name never changes a file under a different name.
#include "copy/change_lister.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/system_error.h"
#include "varve/types.h"

namespace varve::copy {
namespace {

constexpr std::size_t kEntriesListed = 256;
constexpr std::size_t kChangeDataMax = 4U << 20;

bool has_type(const SealedEntry& entry, std::uint32_t type) {
  return is_type(entry.attributes.mode, type);
}

bool is_linked(const SealedEntry& entry) {
  return !has_type(entry, S_IFDIR) && entry.attributes.nlink > 1;
}

std::string joined(const std::vector<std::string>& names) {
  std::string path;
  for (const std::string& name : names) {
    if (!path.empty()) path += '/';
    path += name;
  }
  return path;
}

Change change_of(ChangeKind kind, const std::string& name, const SealedEntry& entry) {
  Change change;
  change.kind = kind;
  change.name = name;
  change.rank = entry.rank;
  if (kind == ChangeKind::kMake || kind == ChangeKind::kAttributes) {
    change.mode = entry.attributes.mode;
    change.uid = entry.attributes.uid;
    change.gid = entry.attributes.gid;
    change.rdev = entry.attributes.rdev;
    change.mtime = entry.attributes.mtime;
  }
  return change;
}

/// Returns the names from the root to an entry, without the root's.
Result<std::vector<std::string>> names_to(VersionReader& version, Rank rank) {
  std::vector<std::string> names;
  while (rank != 0) {
    VARVE_TRY_ASSIGN(const Rank parent, version.parent(rank));
    std::optional<std::string> name;
    // Positions are ranks in a version of a repository. If not, the search begins at the start.
    for (const std::uint64_t after : {rank - 1, Rank{0}}) {
      if (name) break;
      VARVE_TRY(version.list(parent, after,
                             [&](std::uint64_t, std::string_view found, const SealedEntry& entry) {
                               if (entry.rank == rank) name = found;
                               return entry.rank < rank;
                             }));
    }
    if (!name) return Error(ErrorCode::kCorrupt, "a directory does not have one of its entries");
    names.push_back(std::move(*name));
    rank = parent;
  }
  std::ranges::reverse(names);
  return names;
}

}  // namespace

// A process that lacks descriptors or memory knows nothing of the file.
bool is_damage(const Error& error) {
  return !base::lacks_resources(error) &&
         (error.code() == ErrorCode::kCorrupt || error.code() == ErrorCode::kIo);
}

bool is_gone(const Error& error) {
  return error.code() == ErrorCode::kStale || error.code() == ErrorCode::kNotFound;
}

Result<std::string> path_of(VersionReader& version, Rank rank) {
  VARVE_TRY_ASSIGN(const auto names, names_to(version, rank));
  return joined(names);
}

Result<const ChangeLister::Entry*> ChangeLister::Cursor::peek() {
  if (next_ < entries_.size()) return &entries_[next_];
  if (version_ == nullptr || ended_) return static_cast<const Entry*>(nullptr);
  entries_.clear();
  next_ = 0;
  VARVE_TRY(
      version_->list(directory_, position_,
                     [&](std::uint64_t position, std::string_view name, const SealedEntry& entry) {
                       entries_.push_back({std::string(name), entry});
                       position_ = position;
                       return entries_.size() < kEntriesListed;
                     }));
  ended_ = entries_.size() < kEntriesListed;
  return entries_.empty() ? nullptr : &entries_.front();
}

Result<void> ChangeLister::run() {
  VARVE_TRY_ASSIGN(const SealedEntry root, now_.get(0));
  bool same_content = false;
  if (before_ != nullptr) {
    VARVE_TRY_ASSIGN(const SealedEntry old, before_->get(0));
    same_content = root.content_id != 0 && root.content_id == old.content_id;
  }
  frames_.push_back({root, same_content ? Cursor() : Cursor(&now_, 0),
                     same_content ? Cursor() : Cursor(before_, 0)});
  while (!frames_.empty()) VARVE_TRY(step());
  return pass_links();
}

Result<void> ChangeLister::step() {
  Frame& frame = frames_.back();
  VARVE_TRY_ASSIGN(const Entry* now, frame.now.peek());
  VARVE_TRY_ASSIGN(const Entry* old, frame.before.peek());
  if (now == nullptr && old == nullptr) {
    // Attributes come last, because changes in a directory change the directory's time.
    VARVE_TRY(pass_attributes("", frame.directory));
    frames_.pop_back();
    if (!here_.empty()) here_.pop_back();
    return {};
  }
  if (old != nullptr && (now == nullptr || old->name < now->name)) {
    Change gone;
    gone.kind = ChangeKind::kRemove;
    gone.name = old->name;
    frame.before.take();
    return pass(std::move(gone));
  }
  const Entry entry = *now;
  frame.now.take();
  if (old == nullptr || entry.name < old->name) return add(entry);
  const Entry replaced = *old;
  frame.before.take();
  return compare(entry, replaced);
}

Result<void> ChangeLister::add(const Entry& entry) {
  if (has_type(entry.entry, S_IFDIR)) {
    VARVE_TRY(pass(change_of(ChangeKind::kMake, entry.name, entry.entry)));
    return push(entry, std::nullopt);
  }
  if (is_linked(entry.entry)) {
    const auto [made, is_first] = remade_.emplace(entry.entry.link_group, entry.entry.rank);
    if (!is_first) return {};
  }
  if (left_out_.contains(entry.entry.rank)) return {};
  return readable(entry, add_file(entry));
}

/// Leaves a file out if a part of the file is unreadable and the caller agrees.
Result<void> ChangeLister::readable(const Entry& entry, Result<void> passed) {
  if (passed || !is_damage(passed.error())) return passed;
  if (!unreadable_(path_here(entry.name), passed.error())) return passed;
  left_out_.insert(entry.entry.rank);
  return {};
}

Result<void> ChangeLister::add_file(const Entry& entry) {
  Change made = change_of(ChangeKind::kMake, entry.name, entry.entry);
  if (has_type(entry.entry, S_IFLNK)) {
    VARVE_TRY_ASSIGN(made.target, now_.read_link(entry.entry.rank));
  }
  VARVE_TRY(pass(std::move(made)));
  if (has_type(entry.entry, S_IFREG)) {
    std::vector<FileRange> ranges;
    VARVE_TRY(now_.list_changes(entry.entry.rank, nullptr, 0, [&](const FileRange& range) {
      if (!range.is_hole) ranges.push_back(range);
      return true;
    }));
    for (const FileRange& range : ranges) VARVE_TRY(pass_data(entry, range));
  }
  return pass_attributes(entry.name, entry.entry);
}

Result<void> ChangeLister::compare(const Entry& entry, const Entry& old) {
  const bool same_type =
      (entry.entry.attributes.mode & S_IFMT) == (old.entry.attributes.mode & S_IFMT);
  if (!same_type) return add(entry);
  if (has_type(entry.entry, S_IFDIR)) return compare_directories(entry, old);
  VARVE_TRY_ASSIGN(const bool same, now_.is_same(entry.entry.rank, *before_, old.entry.rank));
  if (same) return {};
  const bool is_plain = !is_linked(entry.entry) && !is_linked(old.entry);
  if (!is_plain || !has_type(entry.entry, S_IFREG) || left_out_.contains(entry.entry.rank)) {
    return add(entry);
  }
  return readable(entry, compare_contents(entry, old));
}

Result<void> ChangeLister::compare_directories(const Entry& entry, const Entry& old) {
  const bool both_empty = entry.entry.attributes.size == 0 && old.entry.attributes.size == 0;
  const bool same_content =
      both_empty || (entry.entry.content_id != 0 && entry.entry.content_id == old.entry.content_id);
  if (!same_content) return push(entry, old.entry.rank);
  VARVE_TRY_ASSIGN(const bool same, now_.is_same(entry.entry.rank, *before_, old.entry.rank));
  return same ? Result<void>() : pass_attributes(entry.name, entry.entry);
}

// A mostly changed file is written from front to back, and so stored without a detour.
Result<void> ChangeLister::compare_contents(const Entry& entry, const Entry& old) {
  std::vector<FileRange> ranges;
  std::uint64_t bytes = 0;
  VARVE_TRY(
      now_.list_changes(entry.entry.rank, before_, old.entry.rank, [&](const FileRange& range) {
        ranges.push_back(range);
        if (!range.is_hole) bytes += range.bytes;
        return true;
      }));
  if (bytes > entry.entry.attributes.size / 2) return add_file(entry);
  for (const FileRange& range : ranges) VARVE_TRY(pass_range(entry, range));
  return pass_attributes(entry.name, entry.entry);
}

Result<void> ChangeLister::push(const Entry& entry, std::optional<Rank> before) {
  frames_.push_back(
      {entry.entry, Cursor(&now_, entry.entry.rank), before ? Cursor(before_, *before) : Cursor()});
  here_.push_back(entry.name);
  return {};
}

Result<void> ChangeLister::pass_range(const Entry& entry, const FileRange& range) {
  if (!range.is_hole) return pass_data(entry, range);
  Change hole = change_of(ChangeKind::kHole, entry.name, entry.entry);
  hole.offset = range.offset;
  hole.bytes = range.bytes;
  return pass(std::move(hole));
}

Result<void> ChangeLister::pass_data(const Entry& entry, const FileRange& range) {
  Change data = change_of(ChangeKind::kData, entry.name, entry.entry);
  std::size_t bytes = 0;
  Result<void> passed;
  const auto flush = [&] {
    if (data.chunks.empty()) return true;
    const std::uint64_t end = data.offset + bytes;
    passed = pass(std::exchange(data, change_of(ChangeKind::kData, entry.name, entry.entry)));
    data.offset = end;
    bytes = 0;
    return passed.has_value();
  };
  VARVE_TRY(
      now_.list_chunks(entry.entry.rank, range.offset, range.bytes, [&](const FileChunk& chunk) {
        if (bytes + chunk.piece.bytes > kChangeDataMax && !flush()) return false;
        if (data.chunks.empty()) data.offset = chunk.piece.offset;
        data.chunks.push_back({chunk.piece.bytes, chunk.fingerprint, chunk.piece});
        bytes += chunk.piece.bytes;
        return true;
      }));
  if (passed) flush();
  return passed;
}

Result<void> ChangeLister::pass_attributes(const std::string& name, const SealedEntry& entry) {
  Change change = change_of(ChangeKind::kAttributes, name, entry);
  if (has_type(entry, S_IFREG)) change.size = entry.attributes.size;
  VARVE_TRY_ASSIGN(change.xattrs, now_.xattrs(entry.rank));
  return pass(std::move(change));
}

/// Passes a change in the present directory, after the moves from the directory of the last change.
Result<void> ChangeLister::pass(Change&& change) {
  std::size_t common = 0;
  while (common < std::min(there_.size(), here_.size()) && there_[common] == here_[common]) {
    ++common;
  }
  while (there_.size() > common) {
    there_.pop_back();
    VARVE_TRY(sink_(Change()));  // kLeave.
  }
  while (there_.size() < here_.size()) {
    Change enter;
    enter.kind = ChangeKind::kEnter;
    enter.name = here_[there_.size()];
    there_.push_back(enter.name);
    VARVE_TRY(sink_(std::move(enter)));
  }
  return sink_(std::move(change));
}

Result<void> ChangeLister::pass_links() {
  if (remade_.empty()) return {};
  std::set<Rank> made_ranks;
  for (const auto& [group, rank] : remade_) made_ranks.insert(rank);
  std::map<Rank, Rank> made_by_first;
  VARVE_TRY_ASSIGN(const auto names, now_.linked_names());
  for (const LinkedName& name : names) {
    if (made_ranks.contains(name.rank)) made_by_first[name.first] = name.rank;
  }
  std::set<Rank> directories;
  for (const LinkedName& name : names) {
    const auto made = made_by_first.find(name.first);
    if (made == made_by_first.end() || made->second == name.rank) continue;
    if (left_out_.contains(made->second)) continue;
    VARVE_TRY_ASSIGN(here_, names_to(now_, name.rank));
    Change link;
    link.name = here_.back();
    here_.pop_back();
    link.kind = ChangeKind::kLink;
    VARVE_TRY_ASSIGN(link.target, path_of(now_, made->second));
    VARVE_TRY(pass(std::move(link)));
    VARVE_TRY_ASSIGN(const Rank directory, now_.parent(name.rank));
    directories.insert(directory);
  }
  return pass_directories(directories);
}

Result<void> ChangeLister::pass_left_out() {
  if (left_out_.empty()) return {};
  VARVE_TRY_ASSIGN(const auto names, now_.linked_names());
  std::set<Rank> first_names;
  for (const LinkedName& name : names) {
    if (left_out_.contains(name.rank)) first_names.insert(name.first);
  }
  std::set<Rank> gone = left_out_;
  for (const LinkedName& name : names) {
    if (first_names.contains(name.first)) gone.insert(name.rank);
  }
  std::set<Rank> directories;
  for (const Rank rank : gone) {
    VARVE_TRY_ASSIGN(here_, names_to(now_, rank));
    Change removal;
    removal.kind = ChangeKind::kRemove;
    removal.name = here_.back();
    here_.pop_back();
    VARVE_TRY(pass(std::move(removal)));
    VARVE_TRY_ASSIGN(const Rank directory, now_.parent(rank));
    directories.insert(directory);
  }
  return pass_directories(directories);
}

Result<void> ChangeLister::pass_directories(const std::set<Rank>& directories) {
  for (const Rank rank : directories) {
    VARVE_TRY_ASSIGN(here_, names_to(now_, rank));
    VARVE_TRY_ASSIGN(const SealedEntry directory, now_.get(rank));
    VARVE_TRY(pass_attributes("", directory));
  }
  return {};
}

std::string ChangeLister::path_here(std::string_view name) const {
  auto names = here_;
  names.emplace_back(name);
  return joined(names);
}

}  // namespace varve::copy
