// SPDX-License-Identifier: Apache-2.0
#include "version/open_tree.h"

#include <algorithm>

#include "base/coding.h"
#include "base/log.h"
#include "format/dir_entry_codec.h"
#include "format/rewrite_counts.h"
#include "meta/schema.h"

namespace varve::version {

namespace {
constexpr std::size_t kParentBytes = 8;

Ino ino_of(std::string_view value) {
  return value.size() == sizeof(Ino) ? base::load_be64(value) : 0;
}
}  // namespace

Result<void> OpenTree::load() {
  if (overlay_ == nullptr) {
    overlay_end_ = 0;  // An overlay attached later is new and empty.
    return {};
  }
  VARVE_TRY_ASSIGN(const auto env, overlay_->use());
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env));
  VARVE_TRY(counters_.load(txn));
  overlay_end_ = counters_.next();
  return {};
}

Ino OpenTree::remember(const catalog::TreeEntry& found) {
  remembered_ino_ = base_->ino_of(found.rank);
  remembered_ = found;
  return remembered_ino_;
}

Result<OpenInode*> OpenTree::get(Ino ino) {
  if (const auto it = inodes_.find(ino); it != inodes_.end()) return it->second.get();
  const Error removed(ErrorCode::kStale, "the file was removed");
  if (dirty_.contains(ino) || removing_.contains(ino)) return removed;
  std::unique_ptr<OpenInode> inode;
  if (overlay_ != nullptr) {
    VARVE_TRY_ASSIGN(const auto env, overlay_->use());
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env));
    VARVE_TRY_ASSIGN(const auto value, txn.get(meta::overlay::kInodes, meta::ino_key(ino)));
    if (value && value->empty()) return removed;
    if (value) {
      VARVE_TRY_ASSIGN(inode, decode_open_inode(ino, *value, base_end()));
    }
  }
  if (!inode) {
    if (base_ == nullptr || !base_->has(ino)) return removed;
    VARVE_TRY_ASSIGN(inode, ino == remembered_ino_ ? base_->make(remembered_) : base_->load(ino));
  }
  auto* raw = inode.get();
  inodes_[ino] = std::move(inode);
  return raw;
}

Result<std::optional<Ino>> OpenTree::find(Ino directory, std::string_view name) {
  const auto key = meta::dirent_key(directory, name);
  if (const auto it = names_.find(key); it != names_.end()) {
    return it->second.ino == 0 ? std::optional<Ino>() : std::optional(it->second.ino);
  }
  // A program's new name is looked up before creation, and a new directory has no name in the
  // overlay.
  if (overlay_ != nullptr && directory < overlay_end_) {
    VARVE_TRY_ASSIGN(const auto env, overlay_->use());
    VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env));
    VARVE_TRY_ASSIGN(const auto ino, find_name(txn, directory, name));
    if (ino) return *ino == 0 ? std::optional<Ino>() : ino;
  }
  if (!in_base(directory)) return std::optional<Ino>();
  return find_in_base(directory, name);
}

Result<std::optional<Ino>> OpenTree::find_in_base(Ino directory, std::string_view name) {
  VARVE_TRY_ASSIGN(const auto* inode, get(directory));
  if (inode->directory.base_page == format::NodeId{}) return std::optional<Ino>();
  VARVE_TRY_ASSIGN(const auto found, base_->find(directory, inode->directory.base_page, name));
  if (!found) return std::optional<Ino>();
  return std::optional(remember(*found));
}

// The names of one directory set or cleared since the version was opened. Names in memory take
// precedence over names in the overlay.
class OpenTree::Names {
 public:
  /// `txn` is null if there is no overlay.
  [[nodiscard]] static Result<Names> open(OpenTree& tree, const meta::Txn* txn, Ino directory,
                                          std::string_view after) {
    Names names(tree, txn, directory);
    if (txn != nullptr) VARVE_TRY(names.read(after));
    names.changed_ = tree.names_.lower_bound(meta::dirent_key(directory, after));
    return names;
  }

  [[nodiscard]] Result<std::optional<OverlayName>> next() {
    if (batch_ && at_ == batch_->names.size() && batch_->more) {
      const std::string last = batch_->names.back().name;
      VARVE_TRY(read(last));
    }
    const bool have_stored = batch_ && at_ != batch_->names.size();
    const bool have_changed =
        changed_ != tree_.names_.end() && changed_->first.starts_with(prefix_);
    if (!have_stored && !have_changed) return std::optional<OverlayName>();
    std::optional<OverlayName> changed;
    if (have_changed) {
      changed = {changed_->first.substr(kParentBytes), changed_->second.ino};
    }
    if (have_stored) {
      const auto& stored = batch_->names[at_];
      if (!changed || stored.name <= changed->name) ++at_;
      if (!changed || stored.name < changed->name) return std::optional(stored);
    }
    ++changed_;
    return changed;
  }

 private:
  Names(OpenTree& tree, const meta::Txn* txn, Ino directory)
      : tree_(tree), txn_(txn), directory_(directory), prefix_(meta::ino_key(directory)) {}

  // Continues with the names > `after` of the overlay.
  [[nodiscard]] Result<void> read(std::string_view after) {
    VARVE_TRY_ASSIGN(batch_, tree_.batches_.read(*txn_, directory_, after));
    const auto& names = batch_->names;
    const auto at = std::upper_bound(
        names.begin(), names.end(), after,
        [](std::string_view name, const OverlayName& stored) { return name < stored.name; });
    at_ = static_cast<std::size_t>(at - names.begin());
    return {};
  }

  OpenTree& tree_;
  const meta::Txn* txn_;
  Ino directory_;
  std::string prefix_;
  std::shared_ptr<const NameBatch> batch_;  // Null if there is no overlay.
  std::size_t at_ = 0;
  // Visiting may add to the changes, which does not move a std::map's iterators.
  decltype(OpenTree::names_)::const_iterator changed_;
};

Result<void> OpenTree::list(
    Ino directory, std::string_view after,
    const std::function<Result<bool>(std::string_view name, Ino ino)>& visit) {
  std::optional<catalog::DirCursor> sealed;
  std::optional<catalog::TreeEntry> kept;
  if (in_base(directory)) {
    VARVE_TRY_ASSIGN(const auto* inode, get(directory));
    if (inode->directory.base_page != format::NodeId{}) {
      sealed.emplace(base_->names(directory, inode->directory.base_page));
      VARVE_TRY(sealed->seek(after));
      VARVE_TRY_ASSIGN(kept, sealed->next());
    }
  }
  Overlay::Use env;
  std::optional<meta::ReadTxn> txn;
  if (overlay_ != nullptr) {
    VARVE_TRY_ASSIGN(env, overlay_->use());
    VARVE_TRY_ASSIGN(auto begun, meta::ReadTxn::begin(*env));
    txn.emplace(std::move(begun));
  }
  VARVE_TRY_ASSIGN(auto names, Names::open(*this, txn ? &*txn : nullptr, directory, after));
  VARVE_TRY_ASSIGN(auto own, names.next());
  while (own || kept) {
    OverlayName found;
    if (kept && (!own || kept->entry->name < own->name)) {
      found = {kept->entry->name, remember(*kept)};
      VARVE_TRY_ASSIGN(kept, sealed->next());
    } else {
      if (kept && kept->entry->name == own->name) {
        VARVE_TRY_ASSIGN(kept, sealed->next());
      }
      found = std::move(*own);
      VARVE_TRY_ASSIGN(own, names.next());
    }
    if (found.ino == 0 || (!after.empty() && found.name <= after)) continue;
    evict();  // The visitor loads every inode of the directory into memory.
    VARVE_TRY_ASSIGN(const bool more, visit(found.name, found.ino));
    if (!more) return {};
  }
  return {};
}

OpenInode* OpenTree::add(std::unique_ptr<OpenInode> inode) {
  auto* raw = inode.get();
  inodes_[raw->ino] = std::move(inode);
  touch(*raw);
  return raw;
}

void OpenTree::set_name(Ino directory, std::string_view name, Ino ino) {
  names_[meta::dirent_key(directory, name)] = {ino, ++sequence_};
}

void OpenTree::clear_name(Ino directory, std::string_view name) {
  names_[meta::dirent_key(directory, name)] = {0, ++sequence_};
}

void OpenTree::touch(OpenInode& inode) {
  inode.as_in_base = false;
  if (inode.dirty || inode.nlink == 0) return;
  inode.dirty = true;
  dirty_[inode.ino] = false;
}

void OpenTree::erase_record(OpenInode& inode) {
  inode.as_in_base = false;
  inode.dirty = true;
  dirty_[inode.ino] = true;
}

void OpenTree::erase(Ino ino) {
  dirty_[ino] = true;
  inodes_.erase(ino);
}

Result<void> OpenTree::for_each_in_memory(const std::function<Result<void>(OpenInode&)>& visit) {
  for (auto& [ino, inode] : inodes_) VARVE_TRY(visit(*inode));
  return {};
}

void OpenTree::evict() {
  if (inodes_.size() < evict_at_) return;
  for (auto it = inodes_.begin(); it != inodes_.end() && inodes_.size() > kInodesCached / 2;) {
    const auto& inode = *it->second;
    const bool idle = !inode.dirty && !inode.flushing && inode.handles == 0 && inode.nlink != 0 &&
                      !inode.content.stream && !inode.staging.file;
    it = idle ? inodes_.erase(it) : std::next(it);
  }
  // If most inodes are in use, the next attempt waits until more inodes are in memory.
  evict_at_ = std::max(kInodesCached, inodes_.size() + kInodesCached / 4);
}

Result<OpenTree::Changes> OpenTree::take_changes(
    const std::function<Result<Changes::Record>(OpenInode&)>& encode) {
  Changes changes;
  overlay_end_ = counters_.next();
  changes.numbers = counters_.numbers();
  changes.records.reserve(dirty_.size());
  for (const auto& [ino, removed] : dirty_) {
    const auto it = inodes_.find(ino);
    if (removed) {
      changes.records.push_back({ino, std::nullopt, {}});
    } else {
      VARVE_TRY_ASSIGN(auto record, encode(*it->second));
      changes.records.push_back(std::move(record));
    }
  }
  for (const auto& [ino, removed] : dirty_) {
    if (removed) removing_.insert(ino);
    const auto it = inodes_.find(ino);
    if (it == inodes_.end()) continue;
    it->second->dirty = false;
    it->second->flushing = true;
  }
  dirty_.clear();
  changes.names.reserve(names_.size());
  for (const auto& [key, change] : names_) {
    changes.names.push_back({key, change.ino, change.sequence});
  }
  return changes;
}

// An absent record does not remove a name of the base. A record with inode number 0 does; the
// record is also the safe choice if the base cannot be read.
Result<void> OpenTree::commit_names(meta::WriteTxn& txn, const Changes& changes) const {
  for (const auto& change : changes.names) {
    const Ino directory = base::load_be64(change.key);
    const auto name = std::string_view(change.key).substr(kParentBytes);
    bool stored = change.ino != 0;
    if (!stored && in_base(directory)) {
      const auto had = base_->had_name(directory, name);
      stored = !had || *had;
    }
    const auto key = name_key(txn.env(), directory, name);
    if (stored) {
      VARVE_TRY(txn.put(meta::overlay::kDirents, key, encode_name(txn.env(), name, change.ino)));
    } else {
      VARVE_TRY(txn.erase(meta::overlay::kDirents, key));
    }
  }
  return {};
}

Result<void> OpenTree::commit(const Changes& changes) const {
  VARVE_TRY_ASSIGN(const auto env, overlay_->use());
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*env));
  VARVE_TRY(commit_names(txn, changes));
  for (const auto& record : changes.records) {
    const auto key = meta::ino_key(record.ino);
    if (record.bytes || in_base(record.ino)) {
      VARVE_TRY(txn.put(meta::overlay::kInodes, key, record.bytes.value_or("")));
    } else {
      VARVE_TRY(txn.erase(meta::overlay::kInodes, key));
    }
    if (record.tail.empty()) {
      VARVE_TRY(txn.erase(meta::overlay::kTails, key));
    } else {
      VARVE_TRY(txn.put(meta::overlay::kTails, key, base::as_text(record.tail)));
    }
  }
  VARVE_TRY(put_numbers(txn, changes.numbers));
  return txn.commit();
}

void OpenTree::settle(const Changes& changes) {
  if (!changes.names.empty() || !changes.records.empty()) {
    counters_.set_changed_at(changes.numbers.changed_at);
  }
  removing_.clear();
  for (const auto& name : changes.names) {
    const auto it = names_.find(name.key);
    if (it != names_.end() && it->second.sequence == name.sequence) names_.erase(it);
  }
  for (const auto& record : changes.records) {
    const auto it = inodes_.find(record.ino);
    if (it != inodes_.end()) it->second->flushing = false;
  }
  evict();
}

void OpenTree::restore(const Changes& changes) {
  removing_.clear();
  for (const auto& record : changes.records) {
    const auto it = inodes_.find(record.ino);
    if (!record.bytes) {
      dirty_[record.ino] = true;
    } else if (!dirty_.contains(record.ino)) {
      dirty_[record.ino] = false;
    }
    if (it != inodes_.end()) {
      it->second->flushing = false;
      it->second->dirty = true;
    }
  }
}

Result<void> OpenTree::for_each_tail(
    const std::function<Result<void>(Ino, std::string_view)>& visit) const {
  if (overlay_ == nullptr) return {};
  VARVE_TRY_ASSIGN(const auto env, overlay_->use());
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*env));
  return meta::for_each_prefix(txn, meta::overlay::kTails, "",
                               [&](std::string_view key, std::string_view value) -> Result<bool> {
                                 VARVE_TRY(visit(ino_of(key), value));
                                 return true;
                               });
}

}  // namespace varve::version
