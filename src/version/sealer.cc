// SPDX-License-Identifier: Apache-2.0
#include "version/sealer.h"

#include <cerrno>
#include <string>

#include "base/coding.h"
#include "format/container.h"
#include "meta/schema.h"
#include "varve/repository.h"

namespace varve::version {

namespace {

constexpr std::uint64_t kLinkGroupMask = (std::uint64_t{1} << 62) - 1;
constexpr std::size_t kNamesRead = 256;

Error damaged(const char* what) {
  return {ErrorCode::kCorrupt, std::string("the open version's overlay: ") + what, EIO};
}

// A path's hash follows from its parent's and its name: the same path gives the same link
// group in each version, so that unchanged directories stay the same node.
std::uint64_t hash_below(std::uint64_t parent, std::string_view name) {
  std::string bytes = base::be64(parent);
  bytes.append(name);
  return format::checksum64(base::as_bytes(bytes));
}

}  // namespace

struct Sealer::Level {
  std::unique_ptr<OpenInode> inode;
  std::string name;  // Of this directory in its parent.
  std::uint64_t path_hash = 0;
  format::NodeId previous_page;
  catalog::PreviousObjects previous;
  catalog::DirBuilder builder;
  // Names are read in batches, so that no transaction is held while nodes are written.
  std::vector<std::pair<std::string, Ino>> names;
  std::size_t next_name = 0;
  bool more = true;

  explicit Level(catalog::ObjectWriter& objects) : builder(objects, previous) {}
};

Sealer::Sealer(const meta::Env& overlay, catalog::ObjectReader& stored,
               catalog::ObjectWriter& objects, const format::DirEntry* parent, Ino inos)
    : overlay_(overlay),
      stored_(stored),
      objects_(objects),
      parent_(parent),
      rank_of_(inos, SealOutcome::kNoRank) {}

Sealer::~Sealer() = default;

Result<std::unique_ptr<OpenInode>> Sealer::load(Ino ino) {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::overlay::kInodes, meta::ino_key(ino)));
  if (!value) return damaged("a name without its inode");
  return decode_open_inode(ino, *value);
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
  level->name = name;
  level->path_hash = path_hash;
  level->previous_page = previous_of(name);
  if (level->previous_page != format::NodeId{}) {
    // Damage in the parent version must not keep this one from being sealed: it then
    // shares nothing here.
    auto previous = catalog::PreviousObjects::collect(stored_, level->previous_page);
    if (previous) level->previous = std::move(*previous);
  }
  path_.push_back(std::move(level));
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
  const auto known = group_of_.find(ino);
  if (known != group_of_.end()) return known->second;
  std::uint64_t group = path_hash & kLinkGroupMask;
  while (group == 0 || !groups_.insert(group).second) group = (group + 1) & kLinkGroupMask;
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
  const bool first_name = !group_of_.contains(inode.ino);
  if (!inode.is_directory() && inode.nlink > 1) {
    entry.nlink = inode.nlink;
    entry.link_group = link_group(inode.ino, path_hash);
  }
  if (!inode.is_regular()) return entry;
  if (inode.staging != 0) return damaged("a file is still staged");
  entry.size = inode.recipe->bytes();
  entry.data_bytes = inode.recipe->data_bytes();
  if (first_name) {
    logical_bytes_ += entry.data_bytes;
    count_chunks(*inode.recipe);
  }
  if (inode.recipe->runs.size() <= format::kInlineRecipeRunsMax) {
    entry.recipe = *inode.recipe;
  } else {
    VARVE_TRY_ASSIGN(entry.recipe_id, objects_.put_recipe(*inode.recipe, path_.back()->previous));
  }
  return entry;
}

Result<bool> Sealer::step() {
  Level& level = *path_.back();
  if (level.next_name == level.names.size()) {
    if (!level.more) return false;
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
      if (at->value.size() != sizeof(Ino)) return damaged("a bad name record");
      level.names.emplace_back(at->key.substr(prefix.size()), base::load_be64(at->value));
      VARVE_TRY_ASSIGN(at, cursor.next());
    }
    level.more = level.names.size() == kNamesRead;
    if (level.names.empty()) return false;
  }
  const auto& [name, ino] = level.names[level.next_name++];
  if (ino >= rank_of_.size()) return damaged("an inode number out of range");
  if (next_rank_ == SealOutcome::kNoRank) {
    return Error(ErrorCode::kTooLarge, "a version has at most 4,294,967,294 entries", EFBIG);
  }
  const std::uint32_t rank = next_rank_++;
  if (rank_of_[ino] == SealOutcome::kNoRank) rank_of_[ino] = rank;
  const std::uint64_t path_hash = hash_below(level.path_hash, name);
  VARVE_TRY_ASSIGN(const auto inode, load(ino));
  if (inode->is_directory()) {
    VARVE_TRY(enter(ino, name, path_hash));
    return true;
  }
  VARVE_TRY_ASSIGN(auto entry, entry_of(*inode, name, path_hash));
  VARVE_TRY(level.builder.add(std::move(entry)));
  return true;
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
  {
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
    VARVE_TRY_ASSIGN(auto tails, meta::Cursor::open(txn, meta::overlay::kTails));
    VARVE_TRY_ASSIGN(const auto tail, tails.seek(""));
    if (tail) return damaged("a file's last bytes are not cut into chunks");
  }
  SealedTree tree;
  rank_of_[kRootIno] = next_rank_++;
  VARVE_TRY(enter(kRootIno, "", 0));
  while (!path_.empty()) {
    VARVE_TRY_ASSIGN(const bool more, step());
    if (!more) VARVE_TRY(leave(tree));
  }
  VARVE_TRY(objects_.flush());
  tree.chunks = base::IdRuns::from(std::move(runs_));
  tree.entries = next_rank_ - 1;
  tree.logical_bytes = logical_bytes_;
  tree.rank_of = std::move(rank_of_);
  return tree;
}

}  // namespace varve::version
