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
#include "version/overlay_names.h"

namespace varve::version {

namespace {

constexpr std::uint64_t kLinkGroupMask = (std::uint64_t{1} << 62) - 1;
constexpr std::size_t kNamesRead = 256;
// Memory for the names of all open levels, if the overlay is encrypted.
constexpr std::size_t kNameBytesMax = std::size_t{32} << 20;
constexpr std::size_t kNameBytesMin = std::size_t{64} << 10;  // For a level below full ones.

// Returns a path's hash from the parent's hash and the name. The same path gives the same link
// group in each version, so unchanged directories stay the same node.
std::uint64_t hash_below(std::uint64_t parent, std::string_view name) {
  std::string bytes = base::be64(parent);
  bytes.append(name);
  return base::checksum64(base::as_bytes(bytes));
}

// Returns whether the content of a changed file of the base is still the base's.
bool has_base_content(const OpenInode& inode) {
  return !inode.is_regular() || !inode.content.recipe;
}

// Returns the new rank of the entry `at`, at or below `found`. `rank` is the new rank of `found`.
std::uint32_t rank_below(const catalog::TreeEntry& found, std::uint32_t rank, Rank at) {
  return static_cast<std::uint32_t>(rank + (at - found.rank));
}

}  // namespace

struct Sealer::Level {
  std::unique_ptr<OpenInode> inode;
  std::string name;  // Name of the directory in the parent directory.
  std::uint64_t path_hash = 0;
  format::NodeId previous_page;
  catalog::PreviousObjects previous;
  catalog::DirBuilder builder;
  // Names are read in batches, so that no transaction is held during the writing of nodes.
  NameBatch names{{}, true, 0};
  std::size_t next_name = 0;
  // The directory's names in the base.
  std::optional<catalog::DirCursor> base_names;
  std::optional<catalog::TreeEntry> base_name;

  explicit Level(catalog::ObjectWriter& objects) : builder(objects, previous) {}
};

Sealer::Sealer(const meta::Env& overlay, catalog::ObjectReader& stored,
               catalog::ObjectWriter& objects, const format::DirEntry* parent,
               const CloneBase* base, bool count_changes)
    : overlay_(overlay),
      stored_(stored),
      objects_(objects),
      parent_(parent),
      base_(base),
      count_changes_(count_changes && base != nullptr) {}

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
  std::vector<std::uint32_t> content_changed;
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
    const auto visit = [&](std::string_view key, const meta::Value& value) -> Result<bool> {
      if (key >= end) return false;
      const Ino ino = base::load_be64(key);
      changed_.push_back(static_cast<std::uint32_t>(CloneBase::rank_of(ino)));
      if (count_changes_ && base_->has(ino)) {
        bool same = false;
        if (!value.empty()) {
          VARVE_TRY_ASSIGN(const auto now, decode_open_inode(ino, value, base_->end()));
          same = has_base_content(*now);
        }
        if (!same) content_changed.push_back(changed_.back());
      }
      return true;
    };
    VARVE_TRY(meta::for_each_prefix(txn, meta::overlay::kInodes, "", visit));
    // A changed file has changed under each name of the file.
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
      if (name->key.size() < sizeof(Ino)) return damaged_overlay("a name without its directory");
      const Ino directory = base::load_be64(name->key);
      changed_.push_back(static_cast<std::uint32_t>(CloneBase::rank_of(directory)));
      VARVE_TRY_ASSIGN(name, names.seek_behind(meta::ino_key(directory)));
    }
  }
  std::sort(changed_.begin(), changed_.end());
  if (auto subtracted = subtract_changed(content_changed); !subtracted) {
    base::log(base::LogLevel::kWarning,
              "sealing: counting all files, because a changed one of "
              "the version before cannot be read: " +
                  subtracted.error().message());
    count_changes_ = false;
    references_ = {};
    logical_bytes_ = 0;
  }
  return {};
}

Result<void> Sealer::subtract_changed(const std::vector<std::uint32_t>& ranks) {
  if (ranks.empty()) return {};
  catalog::TreeWalker walker(stored_, base_->record().root);
  std::optional<std::uint32_t> next;
  for (const auto rank : ranks) {
    if (rank != next) VARVE_TRY(walker.seek(rank));
    VARVE_TRY_ASSIGN(const auto found, walker.next());
    if (!found || found->rank != rank) {
      return Error(ErrorCode::kCorrupt, "its tree lacks an entry");
    }
    VARVE_TRY(count_file(*found->entry, -1));
    next = rank + 1;
  }
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
  const auto base_page = level->inode->directory.base_page;
  level->previous_page = base_page != format::NodeId{} ? base_page : previous_of(name);
  if (level->previous_page != format::NodeId{}) {
    // Damage in the parent version must not prevent the seal: the directory then shares nothing.
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

// Counts a file at the file's first name in the new tree. If only changes are counted, the counts
// of the base already cover a file of the base with the same content.
Result<void> Sealer::count_new(const OpenInode& inode, const format::DirEntry& entry) {
  const bool in_base = base_ != nullptr && inode.ino < base_->end();
  if (count_changes_ && in_base && (inode.as_in_base || has_base_content(inode))) return {};
  if (!inode.content.recipe) return count_file(entry, 1);
  logical_bytes_ += entry.data_bytes;
  count_chunks(*inode.content.recipe, 1);
  return {};
}

Result<void> Sealer::count_file(const format::DirEntry& entry, int sign) {
  if ((entry.mode & S_IFMT) != S_IFREG) return {};
  if (entry.recipe) {
    count_chunks(*entry.recipe, sign);
  } else {
    VARVE_TRY_ASSIGN(const auto recipe, stored_.recipe(entry.recipe_id, entry.size));
    count_chunks(*recipe, sign);
  }
  logical_bytes_ += sign < 0 ? -entry.data_bytes : entry.data_bytes;
  return {};
}

void Sealer::count_chunks(const format::Recipe& recipe, int sign) {
  for (const auto& run : recipe.runs) {
    if (!run.is_hole()) references_.add({run.first, run.count}, sign);
  }
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
  if (inode.staging.is_staged()) return damaged_overlay("a file is still staged");
  entry.size = inode.content.size;
  entry.data_bytes = inode.content.size - inode.content.hole_bytes;
  if (!inode.content.recipe) {
    entry.recipe_id = inode.content.recipe_id;  // The base's own recipe.
  } else if (inode.content.recipe->runs.size() <= format::kInlineRecipeRunsMax) {
    entry.recipe = *inode.content.recipe;
  } else {
    VARVE_TRY_ASSIGN(entry.recipe_id,
                     objects_.put_recipe(*inode.content.recipe, path_.back()->previous));
  }
  return entry;
}

Result<void> Sealer::read_names(Level& level) const {
  auto& names = level.names;
  if (level.next_name != names.names.size() || !names.more) return {};
  const std::string after = names.names.empty() ? "" : names.names.back().name;
  names = {};
  level.next_name = 0;
  std::size_t held = 0;
  for (const auto& open : path_) held += open->names.bytes;
  const NameLimits limits{kNamesRead,
                          std::max(kNameBytesMin, kNameBytesMax - std::min(held, kNameBytesMax))};
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
  VARVE_TRY_ASSIGN(names, version::read_names(txn, level.inode->ino, after, limits));
  return {};
}

Result<bool> Sealer::step() {
  Level& level = *path_.back();
  VARVE_TRY(read_names(level));
  const auto& names = level.names.names;
  const bool have_own = level.next_name != names.size();
  if (!have_own && !level.base_name) return false;
  if (level.base_name &&
      (!have_own || level.base_name->entry->name < names[level.next_name].name)) {
    const auto found = std::move(*level.base_name);
    VARVE_TRY_ASSIGN(level.base_name, level.base_names->next());
    if (unchanged(found.rank, 1 + found.entry->subtree_entries)) {
      VARVE_TRY(take(found));
    } else {
      VARVE_TRY(add(base_->ino_of(found.rank), found.entry->name));
    }
    return true;
  }
  const auto& [name, ino] = names[level.next_name++];
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
    // A directory with two names could be below itself, and the walk would never end.
    if (!first_name) return damaged_overlay("a directory has two names");
    return enter(ino, name, path_hash);
  }
  VARVE_TRY_ASSIGN(auto entry, entry_of(*inode, name, path_hash));
  if (entry.link_group != 0) links_.push_back({rank, entry.link_group});
  if (first_name && inode->is_regular()) {
    if (auto counted = count_new(*inode, entry); !counted) {
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
  // All names of a hard-linked file have the same inode number, so each name of the file ends a
  // range.
  std::vector<Rank> repeated;
  Rank at = found.rank;
  const auto add_until = [&](Rank end) {
    if (end != at) rank_of_.add_range(base_->ino_of(at), end - at, rank_below(found, rank, at));
    at = end + 1;
  };
  for (const auto& name : base_->links().names_in(found.rank, count)) {
    add_until(name.rank);
    const auto own = rank_below(found, rank, name.rank);
    if (!rank_of_.add(base_->ino_of(name.rank), own)) repeated.push_back(name.rank);
    links_.push_back({own, base_->links().group_of(name.first)});
  }
  add_until(found.rank + count);
  if (!count_changes_) {
    if (auto counted = count_below(found, repeated); !counted) {
      damaged_ = true;
      base::log(base::LogLevel::kError,
                "sealing: the version shares damaged data with the version before: " +
                    counted.error().message());
    }
  }
  return path_.back()->builder.add(*found.entry);
}

Result<void> Sealer::count_below(const catalog::TreeEntry& found,
                                 const std::vector<Rank>& repeated) {
  const std::uint64_t count = 1 + found.entry->subtree_entries;
  std::uint64_t done = 0;
  auto skipped = repeated.begin();
  const auto count_one = [&](const format::DirEntry& entry) -> Result<void> {
    const bool skip = skipped != repeated.end() && *skipped == found.rank + done;
    ++done;
    if (!skip) return count_file(entry, 1);
    ++skipped;
    return {};
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
    if (!counted) outcome = std::move(counted);  // Later files are still counted.
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
  tree.references = std::move(references_);
  tree.counts_changes = count_changes_;
  tree.damaged = damaged_;
  tree.links = catalog::LinkTable::from(std::move(links_));
  tree.entries = next_rank_ - 1;
  tree.logical_bytes = logical_bytes_ + (count_changes_ ? base_->record().logical_bytes : 0);
  tree.rank_of = std::move(rank_of_);
  tree.rank_of.compact();
  return tree;
}

}  // namespace varve::version
