// SPDX-License-Identifier: Apache-2.0
#include "fs/node_attributes.h"

#include "base/clock.h"
#include "fs/node_id.h"
#include "fs/timeouts.h"

namespace varve::fs {
namespace {

/// Returns the common attributes of directories and links outside of versions.
Attributes upper_attributes(const ShowOptions& show, std::uint32_t mode, const Timestamp& time) {
  Attributes attributes;
  attributes.mode = mode;
  attributes.uid = show.owner_uid;
  attributes.gid = show.owner_gid;
  attributes.mtime = attributes.ctime = attributes.atime = time;
  return attributes;
}

}  // namespace

NodeAttributes::NodeAttributes(Repository& repository, const ShowOptions& show)
    : repository_(repository), show_(show), mounted_at_(base::SystemClock().now()) {}

struct stat NodeAttributes::of(const SeriesInfo& series) const {
  Attributes attributes = upper_attributes(show_, S_IFDIR | 0755, series.created_at);
  attributes.nlink = 2;
  return make_stat(attributes, st_ino_of_series(series.id), show_);
}

struct stat NodeAttributes::of(const Slot& slot, const OpenEntry& entry) const {
  return make_stat(entry.attributes, st_ino_of_open(slot.series().id, slot.number(), entry.ino),
                   show_);
}

struct stat NodeAttributes::of(const Slot& slot, const SealedEntry& entry) const {
  return make_stat(entry.attributes,
                   st_ino_of_sealed(slot.series().id, slot.number(), entry.rank, entry.link_group),
                   show_);
}

Result<struct stat> NodeAttributes::of(const Node& node) const {
  switch (node.kind) {
    case Node::Kind::kRoot: {
      Attributes attributes = upper_attributes(show_, S_IFDIR | 0755, mounted_at_);
      attributes.nlink = 2;
      return make_stat(attributes, kRootStIno, show_);
    }
    case Node::Kind::kSeries:
      return of(node.slot->series());
    case Node::Kind::kLatest: {
      VARVE_TRY_ASSIGN(const VersionInfo info,
                       repository_.find_version(node.slot->series().id, "latest"));
      Attributes attributes = upper_attributes(show_, S_IFLNK | 0777, info.sealed_at);
      attributes.size = info.name.size();
      return make_stat(attributes, st_ino_of_latest(node.slot->series().id), show_);
    }
    case Node::Kind::kBeside: {
      VARVE_TRY_ASSIGN(const OpenEntry entry, node.beside->get(node.ino));
      return of(*node.slot, entry);
    }
    case Node::Kind::kOpen: {
      VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->get(node.ino));
      return of(*node.slot, entry);
    }
    case Node::Kind::kSealed: {
      VARVE_TRY_ASSIGN(const SealedEntry entry, node.reader->get(node.rank));
      return of(*node.slot, entry);
    }
    case Node::Kind::kRemoved:
      if (const auto last = node.slot->removed()) return *last;
      break;
  }
  return Error(ErrorCode::kStale, "the directory was removed");
}

fuse_entry_param NodeAttributes::entry(const Slot& slot, const OpenEntry& entry) const {
  fuse_entry_param result{};
  result.ino = pack({.slot = slot.index(), .open = true, .low = entry.ino});
  result.generation = slot.generation();
  result.attr = of(slot, entry);
  result.attr_timeout = result.entry_timeout = kOpenTimeoutS;
  return result;
}

fuse_entry_param NodeAttributes::entry(const Slot& slot, const SealedEntry& entry) const {
  fuse_entry_param result{};
  // A version's root keeps the node id of the open version, so a shell in the root keeps the
  // directory. File handles need the same id in each mount.
  const bool open_root = entry.rank == 0;
  result.ino =
      pack({.slot = slot.index(), .open = open_root, .low = open_root ? kRootIno : entry.rank});
  result.generation =
      S_ISDIR(entry.attributes.mode) ? slot.generation_of_directory(entry.rank) : slot.generation();
  result.attr = of(slot, entry);
  result.attr_timeout = result.entry_timeout = kSealedTimeoutS;
  return result;
}

// Another process seals the versions that a read-only mount shows, and cannot notify the kernel.
bool NodeAttributes::keeps_latest() const { return is_told_ || !repository_.read_only(); }

// The attributes of `latest` are worth caching, because rsync reads them several times per file. A
// change of `latest` drops the attributes and the target from the kernel's cache.
double NodeAttributes::latest_timeout_s() const { return keeps_latest() ? kSeriesTimeoutS : 0; }

double NodeAttributes::timeout_s(const Node& node) const {
  switch (node.kind) {
    case Node::Kind::kSealed:
      return kSealedTimeoutS;
    case Node::Kind::kOpen:
      return kOpenTimeoutS;
    case Node::Kind::kLatest:
      return latest_timeout_s();
    default:
      return kSeriesTimeoutS;
  }
}

}  // namespace varve::fs
