// SPDX-License-Identifier: Apache-2.0
#include "version/open_tree.h"

#include <algorithm>
#include <cerrno>

#include "base/coding.h"
#include "meta/schema.h"

namespace varve::version {

namespace {
constexpr std::string_view kNextInoKey = "next_ino";
constexpr std::size_t kParentBytes = 8;

Ino ino_of(std::string_view value) {
  return value.size() == sizeof(Ino) ? base::load_be64(value) : 0;
}
}  // namespace

Result<void> OpenTree::load() {
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::overlay::kState, kNextInoKey));
  if (value) next_ino_ = ino_of(*value);
  return {};
}

Result<OpenInode*> OpenTree::get(Ino ino) {
  if (const auto it = inodes_.find(ino); it != inodes_.end()) return it->second.get();
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::overlay::kInodes, meta::ino_key(ino)));
  if (!value || dirty_.contains(ino) || removing_.contains(ino)) {
    return Error(ErrorCode::kStale, "the file was removed", ESTALE);
  }
  VARVE_TRY_ASSIGN(auto inode, decode_open_inode(ino, *value));
  auto* raw = inode.get();
  inodes_[ino] = std::move(inode);
  return raw;
}

Result<std::optional<Ino>> OpenTree::find(Ino directory, std::string_view name) {
  const auto key = meta::dirent_key(directory, name);
  if (const auto it = names_.find(key); it != names_.end()) {
    return it->second.ino == 0 ? std::optional<Ino>() : std::optional(it->second.ino);
  }
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
  VARVE_TRY_ASSIGN(const auto value, txn.get(meta::overlay::kDirents, key));
  if (!value) return std::optional<Ino>();
  return std::optional(ino_of(*value));
}

Result<void> OpenTree::list(
    Ino directory, std::string_view after,
    const std::function<Result<bool>(std::string_view name, Ino ino)>& visit) {
  const auto prefix = meta::ino_key(directory);
  const auto from = meta::dirent_key(directory, after);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
  VARVE_TRY_ASSIGN(auto cursor, meta::Cursor::open(txn, meta::overlay::kDirents));
  VARVE_TRY_ASSIGN(auto stored, cursor.seek(from));
  // Visiting may add to the changes, which does not move a std::map's iterators.
  auto changed = names_.lower_bound(from);
  const auto ours = [&](std::string_view key) { return key.starts_with(prefix); };
  while (true) {
    const bool have_stored = stored && ours(stored->key);
    const bool have_changed = changed != names_.end() && ours(changed->first);
    if (!have_stored && !have_changed) return {};
    std::string key;
    Ino ino = 0;
    if (have_changed && (!have_stored || changed->first <= stored->key)) {
      key = changed->first;
      ino = changed->second.ino;
      if (have_stored && stored->key == key) {
        VARVE_TRY_ASSIGN(stored, cursor.next());
      }
      ++changed;
    } else {
      key = stored->key;
      ino = ino_of(stored->value);
      VARVE_TRY_ASSIGN(stored, cursor.next());
    }
    const auto name = std::string_view(key).substr(kParentBytes);
    if (ino == 0 || name.empty() || (!after.empty() && name <= after)) continue;
    // The visitor brings every inode of the directory into memory.
    evict();
    VARVE_TRY_ASSIGN(const bool more, visit(name, ino));
    if (!more) return {};
  }
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
  if (inode.dirty || inode.nlink == 0) return;
  inode.dirty = true;
  dirty_[inode.ino] = false;
}

void OpenTree::erase_record(OpenInode& inode) {
  inode.dirty = true;
  dirty_[inode.ino] = true;
}

void OpenTree::erase(Ino ino) {
  dirty_[ino] = true;
  inodes_.erase(ino);
}

void OpenTree::evict() {
  if (inodes_.size() < evict_at_) return;
  for (auto it = inodes_.begin(); it != inodes_.end() && inodes_.size() > kInodesCached / 2;) {
    const auto& inode = *it->second;
    const bool idle = !inode.dirty && !inode.flushing && inode.handles == 0 && !inode.stream &&
                      !inode.staging_file;
    it = idle ? inodes_.erase(it) : std::next(it);
  }
  // Where most are in use, the next attempt waits until it can be worth its walk.
  evict_at_ = std::max(kInodesCached, inodes_.size() + kInodesCached / 4);
}

Result<OpenTree::Changes> OpenTree::take_changes(
    const std::function<Result<Changes::Record>(OpenInode&)>& encode) {
  Changes changes;
  changes.next_ino = next_ino_;
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

Result<void> OpenTree::commit(const Changes& changes) const {
  VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(overlay_));
  for (const auto& name : changes.names) {
    if (name.ino == 0) {
      VARVE_TRY(txn.erase(meta::overlay::kDirents, name.key));
    } else {
      VARVE_TRY(txn.put(meta::overlay::kDirents, name.key, base::be64(name.ino)));
    }
  }
  for (const auto& record : changes.records) {
    const auto key = meta::ino_key(record.ino);
    if (record.bytes) {
      VARVE_TRY(txn.put(meta::overlay::kInodes, key, *record.bytes));
    } else {
      VARVE_TRY(txn.erase(meta::overlay::kInodes, key));
    }
    if (record.tail.empty()) {
      VARVE_TRY(txn.erase(meta::overlay::kTails, key));
    } else {
      VARVE_TRY(txn.put(meta::overlay::kTails, key, base::as_text(record.tail)));
    }
  }
  VARVE_TRY(txn.put(meta::overlay::kState, kNextInoKey, base::be64(changes.next_ino)));
  return txn.commit();
}

void OpenTree::settle(const Changes& changes) {
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
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(overlay_));
  return meta::for_each_prefix(txn, meta::overlay::kTails, "",
                               [&](std::string_view key, std::string_view value) -> Result<bool> {
                                 VARVE_TRY(visit(ino_of(key), value));
                                 return true;
                               });
}

}  // namespace varve::version
