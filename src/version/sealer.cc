// SPDX-License-Identifier: Apache-2.0
#include "version/sealer.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "base/checksum.h"
#include "base/coding.h"
#include "base/log.h"
#include "format/container.h"
#include "format/dir_entry_codec.h"
#include "meta/schema.h"

namespace varve::version {

namespace {

constexpr std::uint64_t kLinkGroupMask = (std::uint64_t{1} << 62) - 1;
constexpr std::size_t kNamesRead = 256;

// Returns a path's hash from its parent's hash and its name. The same path gives the same link
// group in each version, so unchanged directories stay the same node.
std::uint64_t hash_below(std::uint64_t parent, std::string_view name) {
  std::string bytes = base::be64(parent);
  bytes.append(name);
  return base::checksum64(base::as_bytes(bytes));
}

}  // namespace

struct Sealer::Level {
  std::unique_ptr<OpenInode> inode;
  std::string name;  // Name of this directory in its parent.
  std::uint64_t path_hash = 0;
  format::NodeId previous_page;
  catalog::PreviousObjects previous;
  catalog::DirBuilder builder;
  // Names are read in batches, so that no transaction is held while nodes are written.
  std::vector<std::pair<std::string, Ino>> names;
  std::size_t next_name = 0;
  bool more = true;
  // Names that the directory held in the base.
  std::optional<catalog::DirCursor> base_names;
  std::optional<catalog::TreeEntry> base_name;

  explicit Level(catalog::ObjectWriter& objects) : builder(objects, previous) {}
};

Sealer::Sealer(const meta::Env& overlay, catalog::ObjectReader& stored,
               catalog::ObjectWriter& objects, const format::DirEntry* parent,
               const CloneBase* base)
    : overlay_(overlay), stored_(stored), objects_(objects), parent_(parent), base_(base) {}

Sealer::~Sealer() = default;

Result<void> Sealer::check_at_rest() const {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
  VARVE_TRY_ASSIGN(auto tails, meta::Cursor::open(txn, meta::overlay::kTails));
  VARVE_TRY_ASSIGN(const auto tail, tails.seek(""));
  if (tail) return damaged_overlay("a file's last bytes are not cut into chunks");
  return {};
}

Result<void> Sealer::find_changes() {
  if (base_ == nullptr) return {};
  base_groups_ = base_->links().groups();
  const auto end = meta::ino_key(base_->end());
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
    VARVE_TRY_ASSIGN(auto inodes, meta::Cursor::open(txn, meta::overlay::kInodes));
    VARVE_TRY_ASSIGN(auto inode, inodes.seek(""));
    while (inode && inode->key < end) {
      changed_.push_back(
          static_cast<std::uint32_t>(CloneBase::rank_of(base::load_be64(inode->key))));
      VARVE_TRY_ASSIGN(inode, inodes.next());
    }
    // A changed file has changed under each of its names.
    const std::size_t inodes_changed = changed_.size();
    for (const auto& name : base_->links().names()) {
      if (name.rank != name.first &&
          std::binary_search(changed_.begin(),
                             changed_.begin() + static_cast<std::ptrdiff_t>(inodes_changed),
                             name.first)) {
        changed_.push_back(name.rank);
      }
    }
    VARVE_TRY_ASSIGN(auto names, meta::Cursor::open(txn, meta::overlay::kDirents));
    VARVE_TRY_ASSIGN(auto name, names.seek(""));
    while (name && name->key < end) {
      const Ino directory = base::load_be64(name->key);
      changed_.push_back(static_cast<std::uint32_t>(CloneBase::rank_of(directory)));
      VARVE_TRY_ASSIGN(name, names.seek(meta::ino_key(directory + 1)));
    }
  }
  std::sort(changed_.begin(), changed_.end());
  return {};
}

bool Sealer::unchanged(Rank first, std::uint64_t count) const {
  const auto it = std::lower_bound(changed_.begin(), changed_.end(), first);
  return it == changed_.end() || *it >= first + count;
}

Result<std::unique_ptr<OpenInode>> Sealer::load(Ino ino) {
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
    VARVE_TRY_ASSIGN(const auto value, txn.get(meta::overlay::kInodes, meta::ino_key(ino)));
    if (value && value->empty()) return damaged_overlay("a name of a removed file");
    if (value) return decode_open_inode(ino, *value, base_ == nullptr ? 0 : base_->end());
  }
  if (base_ == nullptr || !base_->has(ino)) return damaged_overlay("a name without an inode");
  return base_->load(ino);
}

format::NodeId Sealer::previous_of(std::string_view name) {
  if (path_.empty()) {
    return parent_ == nullptr ? format::NodeId{} : parent_->child;
  }
  if (path_.back()->previous_page == format::NodeId{}) return format::NodeId{};
  format::DirEntry above;
  above.mode = S_IFDIR;
  above.child = path_.back()->previous_page;
  const catalog::DirTree tree(stored_, above);
  const auto found = tree.lookup({nullptr, &above, 0, 0}, name);
  if (!found || (found->entry->mode & S_IFMT) != S_IFDIR) return format::NodeId{};
  return found->entry->child;
}

Result<void> Sealer::enter(Ino ino, std::string_view name, std::uint64_t path_hash) {
  auto level = std::make_unique<Level>(objects_);
  VARVE_TRY_ASSIGN(level->inode, load(ino));
  if (!level->inode->is_directory()) return damaged_overlay("its root is not a directory");
  level->name = name;
  level->path_hash = path_hash;
  const auto base_page = level->inode->base_page;
  level->previous_page = base_page != format::NodeId{} ? base_page : previous_of(name);
  if (level->previous_page != format::NodeId{}) {
    // Damage in the parent version must not keep this one from being sealed: this directory then
    // shares nothing.
    auto previous = catalog::PreviousObjects::collect(stored_, level->previous_page);
    if (previous) level->previous = std::move(*previous);
  }
  if (base_page != format::NodeId{}) {
    if (base_ == nullptr) return damaged_overlay("a directory without a base");
    level->base_names.emplace(base_->names(ino, base_page));
    VARVE_TRY(level->base_names->seek(""));
    VARVE_TRY_ASSIGN(level->base_name, level->base_names->next());
  }
  path_.push_back(std::move(level));
  return {};
}

Result<std::uint32_t> Sealer::take_ranks(std::uint64_t count) {
  if (count > format::kEntriesEnd - next_rank_) {
    return Error(ErrorCode::kTooLarge, "a version has at most 4,294,967,294 entries");
  }
  const std::uint32_t first = next_rank_;
  next_rank_ += static_cast<std::uint32_t>(count);
  return first;
}

Result<void> Sealer::count_file(const format::DirEntry& entry) {
  if ((entry.mode & S_IFMT) != S_IFREG) return {};
  logical_bytes_ += entry.data_bytes;
  if (entry.recipe) {
    count_chunks(*entry.recipe);
    return {};
  }
  VARVE_TRY_ASSIGN(const auto recipe, stored_.recipe(entry.recipe_id, entry.size));
  count_chunks(*recipe);
  return {};
}

void Sealer::count_chunks(const format::Recipe& recipe) {
  for (const auto& run : recipe.runs) {
    if (run.is_hole()) continue;
    if (!runs_.empty() && runs_.back().first.plus(runs_.back().count) == run.first &&
        runs_.back().first.birth() == run.first.birth()) {
      runs_.back().count += run.count;
    } else {
      runs_.push_back({run.first, run.count});
    }
  }
  if (runs_.size() < runs_compact_at_) return;
  runs_ = base::IdRuns::from(std::move(runs_)).runs();
  runs_compact_at_ = std::max(runs_compact_at_, runs_.size() * 2);
}

std::uint64_t Sealer::link_group(Ino ino, std::uint64_t path_hash) {
  if (base_ != nullptr && ino < base_->end()) {
    const auto group = base_->links().group_of(CloneBase::rank_of(ino));
    if (group != 0) return group;
  }
  const auto known = group_of_.find(ino);
  if (known != group_of_.end()) return known->second;
  std::uint64_t group = path_hash & kLinkGroupMask;
  const auto taken = [&] {
    return group == 0 || std::binary_search(base_groups_.begin(), base_groups_.end(), group) ||
           !groups_.insert(group).second;
  };
  while (taken()) group = (group + 1) & kLinkGroupMask;
  group_of_[ino] = group;
  return group;
}

Result<format::DirEntry> Sealer::entry_of(const OpenInode& inode, std::string_view name,
                                          std::uint64_t path_hash) {
  format::DirEntry entry;
  entry.name = name;
  entry.mode = inode.mode;
  entry.uid = inode.uid;
  entry.gid = inode.gid;
  entry.rdev = inode.rdev;
  entry.mtime = inode.mtime;
  entry.xattrs = inode.xattrs;
  entry.symlink_target = inode.symlink_target;
  if (!inode.is_directory() && inode.nlink > 1) {
    entry.nlink = inode.nlink;
    entry.link_group = link_group(inode.ino, path_hash);
  }
  if (!inode.is_regular()) return entry;
  if (inode.staging != 0) return damaged_overlay("a file is still staged");
  entry.size = inode.size;
  entry.data_bytes = inode.size - inode.hole_bytes;
  if (!inode.recipe) {
    entry.recipe_id = inode.recipe_id;  // The base's own recipe.
  } else if (inode.recipe->runs.size() <= format::kInlineRecipeRunsMax) {
    entry.recipe = *inode.recipe;
  } else {
    VARVE_TRY_ASSIGN(entry.recipe_id, objects_.put_recipe(*inode.recipe, path_.back()->previous));
  }
  return entry;
}

Result<void> Sealer::read_names(Level& level) const {
  if (level.next_name != level.names.size() || !level.more) return {};
  const auto prefix = meta::ino_key(level.inode->ino);
  const std::string after = level.names.empty() ? "" : level.names.back().first;
  level.names.clear();
  level.next_name = 0;
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::overlay::kDirents));
  VARVE_TRY_ASSIGN(auto at, cursor.seek(prefix + after));
  if (at && !after.empty() && at->key == prefix + after) {
    VARVE_TRY_ASSIGN(at, cursor.next());
  }
  while (at && at->key.starts_with(prefix) && level.names.size() < kNamesRead) {
    const auto name = at->key.substr(prefix.size());
    if (at->value.size() != sizeof(Ino) || !format::is_entry_name(name)) {
      return damaged_overlay("a bad name record");
    }
    level.names.emplace_back(name, base::load_be64(at->value));
    VARVE_TRY_ASSIGN(at, cursor.next());
  }
  level.more = level.names.size() == kNamesRead;
  return {};
}

Result<bool> Sealer::step() {
  Level& level = *path_.back();
  VARVE_TRY(read_names(level));
  const bool have_own = level.next_name != level.names.size();
  if (!have_own && !level.base_name) return false;
  if (level.base_name &&
      (!have_own || level.base_name->entry->name < level.names[level.next_name].first)) {
    const auto found = std::move(*level.base_name);
    VARVE_TRY_ASSIGN(level.base_name, level.base_names->next());
    if (unchanged(found.rank, 1 + found.entry->subtree_entries)) {
      VARVE_TRY(take(found));
    } else {
      VARVE_TRY(add(base_->ino_of(found.rank), found.entry->name));
    }
    return true;
  }
  const auto& [name, ino] = level.names[level.next_name++];
  if (level.base_name && level.base_name->entry->name == name) {
    VARVE_TRY_ASSIGN(level.base_name, level.base_names->next());
  }
  if (ino != 0) VARVE_TRY(add(ino, name));
  return true;
}

Result<void> Sealer::add(Ino ino, std::string_view name) {
  VARVE_TRY_ASSIGN(const auto rank, take_ranks(1));
  const bool first_name = rank_of_.add(ino, rank);
  const std::uint64_t path_hash = hash_below(path_.back()->path_hash, name);
  VARVE_TRY_ASSIGN(const auto inode, load(ino));
  if (inode->is_directory()) {
    // A directory with two names could be below itself, and the walk would not end.
    if (!first_name) return damaged_overlay("a directory has two names");
    return enter(ino, name, path_hash);
  }
  VARVE_TRY_ASSIGN(auto entry, entry_of(*inode, name, path_hash));
  if (entry.link_group != 0) links_.push_back({rank, entry.link_group});
  if (first_name && inode->is_regular()) {
    if (inode->recipe) {
      logical_bytes_ += entry.data_bytes;
      count_chunks(*inode->recipe);
    } else if (auto counted = count_file(entry); !counted) {
      damaged_ = true;
      base::log(base::LogLevel::kError, "sealing: " + counted.error().message());
    }
  }
  return path_.back()->builder.add(std::move(entry));
}

// Damage below the entry does not stop the seal: the new version then shares the damage of the
// base.
Result<void> Sealer::take(const catalog::TreeEntry& found) {
  const std::uint64_t count = 1 + found.entry->subtree_entries;
  VARVE_TRY_ASSIGN(const auto rank, take_ranks(count));
  std::uint64_t done = 0;
  if (auto counted = count_below(found, rank, done); !counted) {
    damaged_ = true;
    base::log(base::LogLevel::kError,
              "sealing: the version shares damaged data with the version before: " +
                  counted.error().message());
  }
  for (; done < count; ++done) {
    rank_of_.add(base_->ino_of(found.rank + done), rank + static_cast<std::uint32_t>(done));
  }
  for (const auto& name : base_->links().names_in(found.rank, count)) {
    links_.push_back({static_cast<std::uint32_t>(rank + (name.rank - found.rank)),
                      base_->links().group_of(name.first)});
  }
  return path_.back()->builder.add(*found.entry);
}

Result<void> Sealer::count_below(const catalog::TreeEntry& found, std::uint32_t rank,
                                 std::uint64_t& done) {
  const std::uint64_t count = 1 + found.entry->subtree_entries;
  const auto count_one = [&](const format::DirEntry& entry) -> Result<void> {
    const bool first_name =
        rank_of_.add(base_->ino_of(found.rank + done), rank + static_cast<std::uint32_t>(done));
    ++done;
    return first_name ? count_file(entry) : Result<void>();
  };
  if ((found.entry->mode & S_IFMT) != S_IFDIR) return count_one(*found.entry);
  Result<void> outcome;
  catalog::TreeWalker walker(stored_, *found.entry);
  while (true) {
    VARVE_TRY_ASSIGN(const auto at, walker.next());
    if (!at && done == count) return outcome;
    if (!at || done == count) {
      return Error(ErrorCode::kCorrupt,
                   "the number of entries in a directory differs from its record");
    }
    auto counted = count_one(*at->entry);
    if (!counted) outcome = std::move(counted);  // The files after it are still counted.
  }
}

Result<void> Sealer::leave(SealedTree& tree) {
  const auto level = std::move(path_.back());
  path_.pop_back();
  VARVE_TRY_ASSIGN(const auto built, level->builder.finish());
  VARVE_TRY_ASSIGN(auto entry, entry_of(*level->inode, level->name, level->path_hash));
  entry.child = built.root;
  entry.subtree_entries = built.subtree_entries;
  entry.subdirectories = built.subdirectories;
  if (path_.empty()) {
    tree.root = std::move(entry);
    return {};
  }
  return path_.back()->builder.add(std::move(entry));
}

Result<SealedTree> Sealer::seal() {
  VARVE_TRY(check_at_rest());
  VARVE_TRY(find_changes());
  SealedTree tree;
  rank_of_.add(kRootIno, next_rank_++);
  VARVE_TRY(enter(kRootIno, "", 0));
  while (!path_.empty()) {
    VARVE_TRY_ASSIGN(const bool more, step());
    if (!more) VARVE_TRY(leave(tree));
  }
  VARVE_TRY(objects_.flush());
  tree.chunks = base::IdRuns::from(std::move(runs_));
  tree.damaged = damaged_;
  tree.links = catalog::LinkTable::from(std::move(links_));
  tree.entries = next_rank_ - 1;
  tree.logical_bytes = logical_bytes_;
  tree.rank_of = std::move(rank_of_);
  return tree;
}

}  // namespace varve::version
