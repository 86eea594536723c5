// SPDX-License-Identifier: Apache-2.0
#include "version/sealed_version.h"

#include <sys/stat.h>

#include <algorithm>

#include "catalog/version_origin.h"
#include "restore/piece_reader.h"
#include "version/content_changes.h"
#include "version/recipe_seek.h"

namespace varve::version {

namespace {

bool is_type(const format::DirEntry& entry, std::uint32_t type) {
  return (entry.mode & S_IFMT) == type;
}

// The files after a given file in tree order, with recipes.
class FollowingFiles final : public restore::FutureFiles {
 public:
  FollowingFiles(std::shared_ptr<SealedVersion> version, catalog::ObjectReader& objects,
                 const format::DirEntry& root, Rank after)
      : version_(std::move(version)), objects_(objects), walker_(objects, root), after_(after) {}

  Result<std::optional<restore::FileContent>> next() override {
    if (!started_) VARVE_TRY(walker_.seek(after_ + 1));
    started_ = true;
    while (true) {
      VARVE_TRY_ASSIGN(const auto found, walker_.next());
      if (!found) return std::optional<restore::FileContent>();
      if (!is_type(*found->entry, S_IFREG) || found->entry->size == 0) continue;
      restore::FileContent content;
      content.ordinal = found->rank;
      VARVE_TRY_ASSIGN(content.recipe, recipe_of(objects_, *found->entry));
      return std::optional(std::move(content));
    }
  }

 private:
  const std::shared_ptr<SealedVersion> version_;  // Keeps the root alive.
  catalog::ObjectReader& objects_;
  catalog::TreeWalker walker_;
  const Rank after_;
  bool started_ = false;
};

}  // namespace

Result<std::shared_ptr<const format::Recipe>> recipe_of(catalog::ObjectReader& objects,
                                                        const format::DirEntry& entry) {
  if (entry.recipe) return std::make_shared<const format::Recipe>(*entry.recipe);
  return objects.recipe(entry.recipe_id, entry.size);
}

namespace {
Error deleted() { return {ErrorCode::kStale, "the version was deleted"}; }
}  // namespace

SealedFile::SealedFile(std::shared_ptr<SealedVersion> version,
                       std::shared_ptr<OpenFiles> open_files,
                       std::shared_ptr<const format::Recipe> recipe,
                       std::unique_ptr<restore::ReadHandle> handle)
    : version_(std::move(version)),
      open_files_(std::move(open_files)),
      recipe_(std::move(recipe)),
      size_(recipe_->bytes()),
      index_(recipe_),
      handle_(std::move(handle)) {}

SealedFile::~SealedFile() {
  if (open_files_) open_files_->leave();
}

// A read interrupted by the deletion may fail with another error; the cause is still the deletion.
Result<ReadBytes> SealedFile::read_as(const ReadRequest& request) {
  auto got = cut_off() ? Result<ReadBytes>(deleted()) : handle_->read_as(request);
  if (!got && cut_off()) return deleted();
  return got;
}

Result<std::uint64_t> SealedFile::seek_data(std::uint64_t offset) {
  return seek_blocks_in_recipe(index_, size_, offset, SeekFor::kData);
}

Result<std::uint64_t> SealedFile::seek_hole(std::uint64_t offset) {
  return seek_blocks_in_recipe(index_, size_, offset, SeekFor::kHole);
}

SealedVersion::SealedVersion(const SealedVersionParts& parts, VersionInfo info,
                             format::DirEntry root)
    : parts_(parts), info_(std::move(info)), root_(std::move(root)), tree_(*parts.objects, root_) {}

SealedEntry SealedVersion::entry_of(const catalog::TreeEntry& found) const {
  const format::DirEntry& e = *found.entry;
  SealedEntry entry;
  entry.rank = found.rank;
  entry.link_group = e.link_group;
  auto& a = entry.attributes;
  a.mode = e.mode;
  a.uid = e.uid;
  a.gid = e.gid;
  a.rdev = e.rdev;
  a.mtime = a.atime = e.mtime;
  a.ctime = info_.sealed_at;  // The seal is the last change: docs/ARCHITECTURE.md.
  a.nlink = is_type(e, S_IFDIR) ? 2 + e.subdirectories : e.nlink;
  if (is_type(e, S_IFREG)) {
    a.size = e.size;
    a.data_bytes = e.data_bytes;
  } else if (is_type(e, S_IFLNK)) {
    a.size = e.symlink_target.size();
  } else if (is_type(e, S_IFDIR)) {
    a.size = e.subtree_entries;
    entry.content_id = e.child.value;
  }
  return entry;
}

bool OpenFiles::enter() {
  std::int64_t count = count_;
  while (count >= 0) {
    if (count_.compare_exchange_weak(count, count + 1)) return true;
  }
  return false;
}

bool OpenFiles::close() {
  std::int64_t none = 0;
  return count_.compare_exchange_strong(none, kClosed);
}

Result<SealedEntry> SealedVersion::get(Rank rank) {
  VARVE_TRY_ASSIGN(const auto found, tree_.get(rank));
  return entry_of(found);
}

Result<SealedEntry> SealedVersion::lookup(Rank directory, std::string_view name) {
  VARVE_TRY_ASSIGN(const auto parent_entry, tree_.get(directory));
  VARVE_TRY_ASSIGN(const auto found, tree_.lookup(parent_entry, name));
  return entry_of(found);
}

Result<Rank> SealedVersion::parent(Rank rank) {
  VARVE_TRY_ASSIGN(const auto found, tree_.get(rank));
  return found.parent;
}

Result<void> SealedVersion::list(Rank directory, std::uint64_t after, const Visitor& visit) {
  VARVE_TRY_ASSIGN(const auto parent_entry, tree_.get(directory));
  if (!is_type(*parent_entry.entry, S_IFDIR)) {
    return Error(ErrorCode::kNotDirectory, "not a directory");
  }
  return tree_.list(parent_entry, after, [&](const catalog::TreeEntry& found) {
    return visit(found.rank, found.entry->name, entry_of(found));
  });
}

Result<std::string> SealedVersion::read_link(Rank rank) {
  VARVE_TRY_ASSIGN(const auto found, tree_.get(rank));
  if (!is_type(*found.entry, S_IFLNK)) return Error(ErrorCode::kInvalid, "not a symlink");
  return found.entry->symlink_target;
}

Result<Xattrs> SealedVersion::xattrs(Rank rank) {
  VARVE_TRY_ASSIGN(const auto found, tree_.get(rank));
  if (rank != 0) return found.entry->xattrs;
  Xattrs of_root = found.entry->xattrs;
  catalog::hide_own_attributes(of_root);
  return of_root;
}

Result<bool> SealedVersion::may_have_xattrs(const std::function<bool()>& goes_on) {
  constexpr std::uint64_t kEntriesBetweenCalls = 1024;
  catalog::TreeWalker walker(*parts_.objects, root_);
  for (std::uint64_t seen = 1;; ++seen) {
    VARVE_TRY_ASSIGN(const auto found, walker.next());
    if (!found) return false;
    const auto shown = [&](const Xattr& xattr) {
      return seen != 1 || !catalog::is_hidden_attribute(xattr.name);
    };
    if (std::ranges::any_of(found->entry->xattrs, shown)) return true;
    if (seen % kEntriesBetweenCalls == 0 && !goes_on()) return true;
  }
}

Result<SealedVersion::Stored> SealedVersion::stored(Rank rank) {
  VARVE_TRY_ASSIGN(const auto found, tree_.get(rank));
  Stored stored;
  stored.entry = *found.entry;
  if (is_type(stored.entry, S_IFREG)) {
    VARVE_TRY_ASSIGN(stored.recipe, recipe_of(*parts_.objects, stored.entry));
  }
  return stored;
}

Result<void> SealedVersion::locate_data(Rank rank, std::uint64_t offset,
                                        const PieceVisitor& visit) {
  VARVE_TRY_ASSIGN(const Stored file, stored(rank));
  if (!file.recipe) return Error(ErrorCode::kInvalid, "not a regular file");
  return restore::locate_pieces(*parts_.source, *file.recipe, offset, visit);
}

void SealedVersion::read_pieces(std::span<const StoredPiece> pieces, const PieceTaker& take) {
  restore::PieceReader(*parts_.source, parts_.read_service->metrics()).read(pieces, take);
}

Result<bool> SealedVersion::is_same(Rank rank, VersionReader& other, Rank other_rank) {
  auto* const sealed = dynamic_cast<SealedVersion*>(&other);
  if (sealed == nullptr || sealed->parts_.source != parts_.source) return false;
  VARVE_TRY_ASSIGN(const auto here, tree_.get(rank));
  VARVE_TRY_ASSIGN(const auto there, sealed->tree_.get(other_rank));
  const format::DirEntry& a = *here.entry;
  const format::DirEntry& b = *there.entry;
  if (a.mode != b.mode || a.uid != b.uid || a.gid != b.gid || a.mtime != b.mtime) return false;
  if (rank != 0 || other_rank != 0) {
    if (a.xattrs != b.xattrs) return false;
  } else {
    VARVE_TRY_ASSIGN(const auto shown, xattrs(0));
    VARVE_TRY_ASSIGN(const auto others, sealed->xattrs(0));
    if (shown != others) return false;
  }
  if (is_type(a, S_IFDIR)) return true;
  // An equal id of a recipe is the same recipe. Otherwise, list_changes() has to compare.
  return a.nlink == b.nlink && a.link_group == b.link_group && a.rdev == b.rdev &&
         a.symlink_target == b.symlink_target && a.size == b.size && a.recipe == b.recipe &&
         a.recipe_id == b.recipe_id;
}

Result<void> SealedVersion::list_changes(Rank rank, VersionReader* before, Rank before_rank,
                                         const RangeVisitor& visit) {
  VARVE_TRY_ASSIGN(const Stored now, stored(rank));
  if (!now.recipe) return Error(ErrorCode::kInvalid, "not a regular file");
  auto* const sealed = dynamic_cast<SealedVersion*>(before);
  if (sealed == nullptr || sealed->parts_.source != parts_.source) {
    return version::list_changes(*parts_.source, *now.recipe, {}, visit);
  }
  VARVE_TRY_ASSIGN(const Stored old, sealed->stored(before_rank));
  if (!old.recipe) return Error(ErrorCode::kInvalid, "not a regular file");
  return version::list_changes(*parts_.source, *now.recipe, *old.recipe, visit);
}

Result<void> SealedVersion::list_chunks(Rank rank, std::uint64_t offset, std::uint64_t bytes,
                                        const ChunkVisitor& visit) {
  VARVE_TRY_ASSIGN(const auto file, listed(rank));
  return version::list_chunks(*parts_.source, file->recipe, {offset, bytes}, visit);
}

Result<std::shared_ptr<SealedVersion::ListedFile>> SealedVersion::listed(Rank rank) {
  {
    const std::lock_guard lock(listed_mutex_);
    if (listed_ && listed_->rank == rank) return listed_;
  }
  VARVE_TRY_ASSIGN(const Stored file, stored(rank));
  if (!file.recipe) return Error(ErrorCode::kInvalid, "not a regular file");
  auto listed = std::make_shared<ListedFile>(rank, file.recipe);
  const std::lock_guard lock(listed_mutex_);
  listed_ = listed;
  return listed;
}

Result<std::vector<LinkedName>> SealedVersion::linked_names() {
  std::optional<catalog::LinkTable> table;
  if (parts_.links) {
    auto stored_table = parts_.links();
    if (stored_table) table = std::move(*stored_table);
  }
  if (!table) {
    VARVE_TRY_ASSIGN(table, catalog::LinkTable::collect(*parts_.objects, root_));
  }
  std::vector<LinkedName> names;
  names.reserve(table->names().size());
  for (const auto& name : table->names()) names.push_back({name.rank, name.first});
  return names;
}

// Returns a file without content.
restore::ReadableFile SealedVersion::readable(Rank rank) {
  restore::ReadableFile file;
  file.version_key =
      (static_cast<std::uint64_t>(info_.series) << 32) | static_cast<std::uint64_t>(info_.number);
  file.content.ordinal = rank;
  file.source = parts_.source;
  file.future = [self = shared_from_this(), objects = parts_.objects, rank] {
    return std::make_unique<FollowingFiles>(self, *objects, self->root_, rank);
  };
  return file;
}

void SealedVersion::will_read_all() { parts_.read_service->will_read_after(readable(0)); }

Result<std::shared_ptr<FileReader>> SealedVersion::open(Rank rank) {
  VARVE_TRY_ASSIGN(const auto found, tree_.get(rank));
  if (is_type(*found.entry, S_IFDIR)) return Error(ErrorCode::kIsDirectory, "a directory");
  if (!is_type(*found.entry, S_IFREG)) {
    return Error(ErrorCode::kInvalid, "not a regular file");
  }
  auto file = readable(rank);
  VARVE_TRY_ASSIGN(file.content.recipe, recipe_of(*parts_.objects, *found.entry));
  const auto recipe = file.content.recipe;
  VARVE_TRY_ASSIGN(auto handle, parts_.read_service->open(std::move(file)));
  if (parts_.open_files && !parts_.open_files->enter()) {
    return Error(ErrorCode::kStale, "the version is being deleted");
  }
  if (parts_.on_open) parts_.on_open(*recipe);
  return std::shared_ptr<FileReader>(std::make_shared<SealedFile>(
      shared_from_this(), parts_.open_files, recipe, std::move(handle)));
}

}  // namespace varve::version
