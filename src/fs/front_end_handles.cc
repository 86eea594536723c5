// SPDX-License-Identifier: Apache-2.0
// File handles: name_to_handle_at(2), open_by_handle_at(2) and NFS.
//
// A handle contains a node id and a generation, and may be older than this mount. For a node id
// that it does not know, the kernel looks up the name "."; to connect a directory with the mount's
// root, it looks up "..". Node ids follow from the series and the version, except for very late
// versions. They are therefore the same in every mount (SlotTable).
#include <algorithm>
#include <cerrno>

#include "fs/front_end.h"
#include "fs/timeouts.h"

namespace varve::fs {

// Loads the series or version of a node id that this mount has not seen. Rejects handles that lead
// outside the mount's root, since an NFS client may forge one.
Result<void> FrontEnd::meet_again(fuse_ino_t ino) {
  const Error stale(ErrorCode::kStale, "nothing has this file handle");
  const NodeId id = unpack(ino);
  const auto place = SlotTable::place_of(id.slot);
  if (root_node_ != kRootNodeId) {
    const Slot* root = slots_.find(unpack(root_node_).slot);
    const Slot* met = slots_.find(id.slot);
    const bool inside =
        met == root || (root->is_series() && place && place->first == root->series().id) ||
        (root->is_series() && met != nullptr && met->series().id == root->series().id);
    if (!inside) return stale;
  }
  if (slots_.find(id.slot) != nullptr) return {};
  if (!place) return stale;
  VARVE_TRY_ASSIGN(const auto all, repository_.series());
  const auto series = std::ranges::find(all, place->first, &SeriesInfo::id);
  if (series == all.end()) return stale;
  if (place->second == VersionNumber{}) {
    slots_.series(*series);
    return {};
  }
  VARVE_TRY_ASSIGN(const auto versions, repository_.versions(series->id));
  const auto version = std::ranges::find(versions, place->second, &VersionInfo::number);
  if (version == versions.end()) return stale;
  VARVE_TRY(version_slot(*series, *version));
  return {};
}

Result<fuse_entry_param> FrontEnd::parent_entry(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kOpen:
      if (!node.is_version_root()) {
        VARVE_TRY_ASSIGN(const Ino parent, node.writer->parent(node.ino));
        VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->get(parent));
        return entry_of(*node.slot, entry);
      }
      return look_up_series(node.slot->series().name);
    case Node::Kind::kSealed:
      if (!node.is_version_root()) {
        VARVE_TRY_ASSIGN(const Rank parent, node.reader->parent(node.rank));
        VARVE_TRY_ASSIGN(const SealedEntry entry, node.reader->get(parent));
        return entry_of(*node.slot, entry);
      }
      return look_up_series(node.slot->series().name);
    case Node::Kind::kLatest:
      return look_up_series(node.slot->series().name);
    default: {
      fuse_entry_param root{};
      root.ino = kRootNodeId;
      VARVE_TRY_ASSIGN(const Node top, resolve(kRootNodeId));
      VARVE_TRY_ASSIGN(root.attr, stat_of(top));
      return root;
    }
  }
}

Result<fuse_entry_param> FrontEnd::look_up_handle(fuse_ino_t ino, bool parent) {
  const auto found = [&]() -> Result<fuse_entry_param> {
    if (ino != kRootNodeId) VARVE_TRY(meet_again(ino));
    VARVE_TRY_ASSIGN(const Node node, resolve(ino));
    if (parent) {
      const bool is_top = ino == kRootNodeId || ino == root_node_;
      VARVE_TRY_ASSIGN(fuse_entry_param entry, is_top ? parent_entry({}) : parent_entry(node));
      if (entry.ino == root_node_) entry.ino = kRootNodeId;
      return entry;
    }
    fuse_entry_param entry{};
    entry.ino = ino;
    entry.generation = node.slot == nullptr ? 0 : node.slot->generation();
    VARVE_TRY_ASSIGN(entry.attr, stat_of(node));
    if (entry.attr.st_nlink == 0) return Error(ErrorCode::kStale, "the file was removed");
    entry.attr_timeout = attribute_timeout_s(node);
    return entry;
  }();
  const bool absent = !found && (found.error().code() == ErrorCode::kNotFound ||
                                 found.error().code() == ErrorCode::kInvalid);
  if (absent) return Error(ErrorCode::kStale, "nothing has this file handle");
  return found;
}

}  // namespace varve::fs
