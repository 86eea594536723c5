// SPDX-License-Identifier: Apache-2.0
// Opens versions that start with a sealed version's tree. A clone of the newest version is an
// overlay over the base's tree. A clone of an older version is a copy, entry by entry, because
// stored objects are shared only between neighbouring versions.
#include "series/clones.h"

#include <sys/stat.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/log.h"
#include "catalog/object_store.h"
#include "catalog/version_origin.h"
#include "layout/category_layout.h"
#include "layout/series_layout.h"
#include "series/lineage_open.h"
#include "series/lineage_store.h"
#include "series/seal_clock.h"
#include "varve/backup.h"
#include "varve/browse.h"
#include "varve/version_name.h"
#include "version/open_version.h"
#include "version/sealed_version.h"

namespace varve::series {

namespace {

constexpr std::size_t kEntriesListed = 1024;

// Copies a sealed tree into an empty open version. Keeps in memory the path to the present
// directory, with up to kEntriesListed entries of each directory on the path.
class TreeCopier {
 public:
  TreeCopier(VersionReader& source, VersionWriter& target) : source_(source), target_(target) {}

  Result<void> run() {
    VARVE_TRY_ASSIGN(const auto root, source_.get(0));
    path_.push_back({root, kRootIno, {}, 0, 0, true});
    while (!path_.empty()) {
      Level& level = path_.back();
      if (level.next == level.entries.size()) VARVE_TRY(read_entries(level));
      if (level.next == level.entries.size()) {
        VARVE_TRY(finish(level));
        path_.pop_back();
        continue;
      }
      const auto& [name, entry] = level.entries[level.next++];
      if ((entry.attributes.mode & S_IFMT) != S_IFDIR) {
        VARVE_TRY(target_.clone(source_, entry.rank, level.ino, name));
        continue;
      }
      NewFile directory;
      directory.mode = entry.attributes.mode;
      VARVE_TRY_ASSIGN(const auto made, target_.create(level.ino, name, directory));
      path_.push_back({entry, made.ino, {}, 0, 0, true});
    }
    return {};
  }

 private:
  struct Level {
    SealedEntry directory;
    Ino ino = 0;
    std::vector<std::pair<std::string, SealedEntry>> entries;
    std::size_t next = 0;
    std::uint64_t position = 0;
    bool more = true;
  };

  Result<void> read_entries(Level& level) {
    level.entries.clear();
    level.next = 0;
    if (!level.more) return {};
    level.more = false;
    return source_.list(
        level.directory.rank, level.position,
        [&](std::uint64_t position, std::string_view name, const SealedEntry& entry) {
          level.more = level.entries.size() == kEntriesListed;
          if (level.more) return false;
          level.entries.emplace_back(name, entry);
          level.position = position;
          return true;
        });
  }

  // Sets a directory's metadata last, because each new name changes the directory's time.
  Result<void> finish(const Level& level) {
    VARVE_TRY_ASSIGN(const auto xattrs, source_.xattrs(level.directory.rank));
    for (const auto& xattr : xattrs) {
      VARVE_TRY(target_.set_xattr(level.ino, xattr.name, xattr.value, XattrMode::kAny));
    }
    const Attributes& from = level.directory.attributes;
    AttributeChange change;
    change.mode = from.mode & 07777;
    change.uid = from.uid;
    change.gid = from.gid;
    change.atime = from.atime;
    change.mtime = from.mtime;
    VARVE_TRY(target_.set_attributes(level.ino, change));
    return {};
  }

  VersionReader& source_;
  VersionWriter& target_;
  std::vector<Level> path_;
};

Error not_newest(const std::string& name) {
  return {ErrorCode::kInvalid,
          name +
              " is not the newest version of its series; only the newest can be reopened. Use "
              "`varve clone` with another name"};
}

}  // namespace

// Refuses a locked version before any work is done, because the seal deletes the replaced version.
Result<void> VersionClones::check_may_reopen(const catalog::VersionRecord& record) {
  VARVE_TRY_ASSIGN(const auto newest, records_.newest_sealed());
  if (newest && newest->number != record.number) return not_newest(record.name);
  VARVE_TRY_ASSIGN(const auto txn, meta::ReadTxn::begin(*parts_.catalog));
  VARVE_TRY_ASSIGN(const auto others, catalog::list_versions(txn, parts_.id));
  for (const auto& other : others) {
    if (other.state != VersionState::kOpen || other.unfinished) continue;
    // Sealing `other` would make `other` the newest version.
    return Error(
        ErrorCode::kBusy,
        other.name + " is open in this series: seal or remove it before you reopen " + record.name);
  }
  VARVE_TRY_ASSIGN(auto locked, lock_of(parts_, txn, record, false));
  if (locked) return *std::move(locked);
  return {};
}

Result<CloneSource> VersionClones::source(VersionNumber source, std::string_view name) {
  CloneSource found;
  VARVE_TRY_ASSIGN(found.record, records_.find(source));
  if (found.record.state != VersionState::kSealed) {
    return Error(ErrorCode::kInvalid, found.record.name + " is not sealed yet");
  }
  found.reopens = name == found.record.name;
  found.own_name = found.reopens ? partial_name(found.record.name) : std::string(name);
  VARVE_TRY(open_.check_may_open(found.own_name));
  if (found.reopens) VARVE_TRY(check_may_reopen(found.record));
  return found;
}

Result<VersionInfo> VersionClones::copy(const catalog::VersionRecord& source,
                                        std::string_view name) {
  VARVE_TRY_ASSIGN(const auto owner, records_.owner());
  version::SealedVersionParts parts;
  parts.objects = store_.objects.get();
  parts.source = store_.all.get();
  parts.read_service = parts_.read_service;
  const auto reader = std::make_shared<version::SealedVersion>(
      parts, version_info(source, owner.name), source.root);
  catalog::VersionRecord record;
  record.series = source.series;
  record.name = name;
  record.unfinished = true;
  record.root.mode = S_IFDIR | 0700;
  record.root.mtime = source.root.mtime;
  VARVE_TRY_ASSIGN(auto info, open_.put_new(record));
  const auto copy = [&]() -> Result<void> {
    VARVE_TRY(open_.resume(record));
    VARVE_TRY(TreeCopier(*reader, *open_.version()).run());
    if (const auto problems = catalog::problems_of(source.number, source.root.xattrs)) {
      VARVE_TRY(open_.version()->set_xattr(kRootIno, catalog::kIncompleteAttribute,
                                           catalog::encode_incomplete(record.number, problems),
                                           XattrMode::kAny));
    }
    VARVE_TRY(open_.version()->sync());
    record.unfinished = false;
    VARVE_TRY_ASSIGN(auto txn, meta::WriteTxn::begin(*parts_.catalog));
    VARVE_TRY(catalog::put_version(txn, record));
    VARVE_TRY(txn.commit());
    manifests_.labels().change({record.number});
    return {};
  };
  auto copied = copy();
  if (copied) return info;
  const auto dropped = open_.drop_unfinished(record);
  if (!dropped) {
    parts_.host->left_behind();
    base::log(base::LogLevel::kWarning, dropped.error().message());
  }
  return std::move(copied).error();
}

}  // namespace varve::series
