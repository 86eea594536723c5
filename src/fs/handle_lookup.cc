// SPDX-License-Identifier: Apache-2.0
#include "fs/handle_lookup.h"

#include <sys/stat.h>

#include <utility>

namespace varve::fs {
namespace {

/// Turns the errors of a missing node into kStale.
Result<fuse_entry_param> or_stale(Result<fuse_entry_param> found) {
  const bool absent = !found && (found.error().code() == ErrorCode::kNotFound ||
                                 found.error().code() == ErrorCode::kInvalid);
  if (absent) return Error(ErrorCode::kStale, "no file has this file handle");
  return found;
}

}  // namespace

Result<Node> HandleLookup::admitted(fuse_ino_t ino) {
  if (ino != kRootNodeId) VARVE_TRY(nodes_.admit(ino));
  return nodes_.resolve(ino);
}

Result<fuse_entry_param> HandleLookup::parent_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kOpen:
      if (!node.is_version_root()) {
        VARVE_TRY_ASSIGN(const Ino parent, node.writer->parent(node.ino));
        VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->get(parent));
        return attributes_.entry(*node.slot, entry);
      }
      return versions_.look_up_series(node.slot->series_name());
    case Node::Kind::kSealed:
      if (!node.is_version_root()) {
        VARVE_TRY_ASSIGN(const Rank parent, node.reader->parent(node.rank));
        VARVE_TRY_ASSIGN(const SealedEntry entry, node.reader->get(parent));
        return attributes_.entry(*node.slot, entry);
      }
      return versions_.look_up_series(node.slot->series_name());
    case Node::Kind::kBeside: {
      VARVE_TRY_ASSIGN(const Ino parent, node.beside->parent(node.ino));
      if (parent == kRootIno) return versions_.look_up_series(node.slot->series_name());
      VARVE_TRY_ASSIGN(const OpenEntry entry, node.beside->get(parent));
      return attributes_.entry(*node.slot, entry);
    }
    case Node::Kind::kLatest:
      return versions_.look_up_series(node.slot->series_name());
    default: {
      fuse_entry_param root{};
      root.ino = kRootNodeId;
      VARVE_TRY_ASSIGN(const Node top, nodes_.resolve(kRootNodeId));
      VARVE_TRY_ASSIGN(root.attr, attributes_.of(top));
      return root;
    }
  }
}

Result<fuse_entry_param> HandleLookup::parent_entry(fuse_ino_t ino) {
  VARVE_TRY_ASSIGN(const Node node, admitted(ino));
  const bool is_top = ino == kRootNodeId || ino == nodes_.root();
  VARVE_TRY_ASSIGN(fuse_entry_param entry, is_top ? parent_of({}) : parent_of(node));
  if (entry.ino == nodes_.root()) entry.ino = kRootNodeId;
  return entry;
}

Result<fuse_entry_param> HandleLookup::self_entry(fuse_ino_t ino) {
  VARVE_TRY_ASSIGN(const Node node, admitted(ino));
  fuse_entry_param entry{};
  entry.ino = ino;
  entry.generation = node.slot == nullptr ? 0 : node.slot->generation();
  VARVE_TRY_ASSIGN(entry.attr, attributes_.of(node));
  if (node.kind == Node::Kind::kSealed && S_ISDIR(entry.attr.st_mode)) {
    entry.generation = node.slot->generation_of_directory(node.rank);
  }
  if (entry.attr.st_nlink == 0) return Error(ErrorCode::kStale, "the file was removed");
  entry.attr_timeout = attributes_.timeout_s(node);
  return entry;
}

Result<fuse_entry_param> HandleLookup::look_up_self(fuse_ino_t ino) {
  return or_stale(self_entry(ino));
}

Result<fuse_entry_param> HandleLookup::look_up_parent(fuse_ino_t ino) {
  return or_stale(parent_entry(ino));
}

}  // namespace varve::fs
