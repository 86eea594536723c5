// SPDX-License-Identifier: Apache-2.0
#include "fs/node_table.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "varve/mount.h"

namespace varve::fs {

Result<Node> NodeTable::resolve(std::uint64_t node_id) {
  Node node;
  if (node_id == kRootNodeId) node_id = root_;
  if (node_id == kRootNodeId) return node;
  const NodeId id = unpack(node_id);
  node.slot = slots_.find(id.slot);
  if (node.slot == nullptr) return Error(ErrorCode::kStale, "unknown node id");
  if (node.slot->is_series()) {
    if (id.open) {
      auto files = repository_.beside(node.slot->series().id);
      if (!files) return Error(ErrorCode::kStale, "the series is gone");
      node.kind = Node::Kind::kBeside;
      node.ino = id.low;
      node.beside = std::move(*files);
      return node;
    }
    if (id.low > kSeriesLatest) return Error(ErrorCode::kStale, "unknown node id");
    if (node.slot->removed() && id.low == kSeriesDirectory) {
      node.kind = Node::Kind::kRemoved;
      return node;
    }
    node.kind = id.low == kSeriesLatest ? Node::Kind::kLatest : Node::Kind::kSeries;
    return node;
  }
  Slot::Tree tree = node.slot->tree();
  if (tree.reader != nullptr) {
    node.kind = Node::Kind::kSealed;
    node.rank = id.low;
    if (id.open) {
      const auto rank = node.slot->rank_of(id.low);
      if (!rank) return Error(ErrorCode::kStale, "the file had no name when it was sealed");
      node.rank = *rank;
    }
    node.reader = std::move(tree.reader);
    return node;
  }
  if (tree.writer == nullptr || !id.open) {
    if (id.low == (id.open ? kRootIno : Rank{0}) && node.slot->removed()) {
      node.kind = Node::Kind::kRemoved;
      return node;
    }
    return Error(ErrorCode::kStale, "the version is gone");
  }
  node.kind = Node::Kind::kOpen;
  node.ino = id.low;
  node.writer = std::move(tree.writer);
  return node;
}

Result<Node> NodeTable::resolve_open(std::uint64_t node_id) {
  VARVE_TRY_ASSIGN(Node node, resolve(node_id));
  switch (node.kind) {
    case Node::Kind::kOpen:
      return node;
    case Node::Kind::kSealed:
      return Error(ErrorCode::kReadOnly, "the version is sealed");
    case Node::Kind::kRemoved:
      return Error(ErrorCode::kNotFound, "the directory was removed");
    case Node::Kind::kBeside:
      return Error(ErrorCode::kUnsupported, "not for files beside versions");
    default:
      if (repository_.read_only()) return Error(ErrorCode::kReadOnly, "mounted read-only");
      return Error(ErrorCode::kNotPermitted, "files must be in a version");
  }
}

Result<void> NodeTable::admit(std::uint64_t node_id) {
  const Error stale(ErrorCode::kStale, "no file has this file handle");
  const NodeId id = unpack(node_id);
  const auto place = SlotTable::place_of(id.slot);
  if (root_ != kRootNodeId) {
    const Slot* root = slots_.find(unpack(root_).slot);
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
  VARVE_TRY(load_version(*series, *version));
  return {};
}

void NodeTable::forget(std::uint64_t node_id) noexcept {
  if (node_id == kRootNodeId) return;
  const NodeId id = unpack(node_id);
  const Slot* slot = id.open ? slots_.find(id.slot) : nullptr;
  if (slot == nullptr) return;
  try {
    const auto writer = slot->tree().writer;
    if (auto* const removed = writer ? writer->removed_files() : nullptr) removed->forget(id.low);
  } catch (const std::exception&) {
    // Out of memory: the removed file stays until the version is sealed or closed.
  }
}

Result<Slot*> NodeTable::load_version(const SeriesInfo& series, const VersionInfo& info) {
  Slot& slot = slots_.version(series, info.number);
  const Slot::Tree tree = slot.tree();
  if (tree.reader != nullptr || (tree.writer != nullptr && info.state == VersionState::kOpen)) {
    return &slot;
  }
  if (info.state == VersionState::kOpen) {
    VARVE_TRY_ASSIGN(auto writer, repository_.writer(series.id));
    if (writer->info().number != info.number) {
      return Error(ErrorCode::kNotFound, "the version was sealed or removed in the meantime");
    }
    if (auto* const removed = writer->removed_files()) removed->keep_removed();
    slot.set_writer(std::move(writer));
  } else {
    VARVE_TRY_ASSIGN(auto reader, repository_.reader(series.id, info.number));
    slot.set_reader(std::move(reader));
  }
  return &slot;
}

}  // namespace varve::fs
