// SPDX-License-Identifier: Apache-2.0
#include "fs/front_end.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include "base/clock.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "fs/errno_map.h"
#include "fs/posix_acl.h"
#include "fs/timeouts.h"
#include "varve/removed_files.h"

namespace varve::fs {
namespace {
constexpr std::size_t kPoolThreads = 32;
constexpr std::size_t kSealedPoolThreads = 4;
constexpr unsigned kRequestBytesMax = 1U << 20;
constexpr unsigned kBackgroundRequestsMax = 64;
constexpr std::string_view kReadAheadKb = "4096";
}  // namespace

FrontEnd::FrontEnd(Repository& repository, const ShowOptions& show)
    : repository_(repository),
      show_(show),
      mounted_at_(base::SystemClock().now()),
      pool_(std::make_unique<base::ThreadPool>(kPoolThreads, "varve-fs")),
      sealed_pool_(std::make_unique<base::ThreadPool>(kSealedPoolThreads, "varve-read")) {}

FrontEnd::~FrontEnd() = default;

void FrontEnd::attach(fuse_session* session, std::string mount_point) {
  session_ = session;
  mount_point_ = std::move(mount_point);
}

Result<void> FrontEnd::set_root(const std::string& series, const std::string& version) {
  if (series.empty()) return {};
  auto found = repository_.find_series(series);
  if (!found) {
    if (found.error().code() != ErrorCode::kNotFound) return std::move(found).error();
    return Error(ErrorCode::kNotFound, fmt::format("there is no series \"{}\" in {}", series,
                                                   repository_.present_path()));
  }
  if (version.empty()) {
    root_node_ =
        pack({.slot = slots_.series(*found).index(), .open = false, .low = kSeriesDirectory});
    return {};
  }
  auto info = repository_.find_version(found->id, version);
  if (!info) {
    if (info.error().code() != ErrorCode::kNotFound) return std::move(info).error();
    return Error(ErrorCode::kNotFound,
                 version == "latest"
                     ? fmt::format("series \"{}\" has no sealed version", series)
                     : fmt::format("there is no version \"{}/{}\" in {}{}", series, version,
                                   repository_.present_path(),
                                   repository_.read_only() ? " that is sealed" : ""));
  }
  VARVE_TRY_ASSIGN(const fuse_entry_param root, version_entry(*found, *info));
  root_node_ = root.ino;
  return {};
}

void FrontEnd::shut_down() {
  pool_.reset();
  sealed_pool_.reset();
  files_.clear();
  recent_files_.clear();
  directories_.clear();
  slots_.drop_all();
}

void FrontEnd::init(fuse_conn_info* connection) {
  connection->max_write = kRequestBytesMax;
  connection->max_read = kRequestBytesMax;
  connection->max_background = kBackgroundRequestsMax;
  connection->congestion_threshold = kBackgroundRequestsMax * 3 / 4;
  connection->time_gran = 1;
  connection->want &=
      ~(FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_SPLICE_READ |
        FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_HANDLE_KILLPRIV |
        FUSE_CAP_DONT_MASK | FUSE_CAP_POSIX_ACL | FUSE_CAP_CACHE_SYMLINKS);
  // Directory replies always include attributes. With READDIRPLUS_AUTO, the kernel asks only for
  // names after the first page of a directory, and then looks up each name that needs attributes.
  connection->want &= ~FUSE_CAP_READDIRPLUS_AUTO;
  if (show_.permissions_checked) {
    connection->want |= connection->capable & (FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK);
  }
  connection->want |= connection->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_READDIRPLUS |
                                             FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_EXPORT_SUPPORT);
  opens_nothing_ = repository_.read_only() && (connection->capable & FUSE_CAP_NO_OPEN_SUPPORT) != 0;
  // The kernel activates the mount point's device only after receiving this reply, so the stat(2)
  // inside tune_read_ahead() blocks until then.
  if (geteuid() == 0) pool_->run([this] { tune_read_ahead(); });
}

/// Raises the kernel's read-ahead. Its default of 128 KiB halves the speed of sequential reads, and
/// the FUSE protocol offers no way to ask for more.
void FrontEnd::tune_read_ahead() const {
  struct stat root {};
  if (::stat(mount_point_.c_str(), &root) != 0) return;
  const std::string path =
      fmt::format("/sys/class/bdi/{}:{}/read_ahead_kb", major(root.st_dev), minor(root.st_dev));
  const base::UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || ::write(file.get(), kReadAheadKb.data(), kReadAheadKb.size()) < 0) {
    base::log(base::LogLevel::kInfo, fmt::format("{}: cannot raise the read-ahead", path));
  }
}

void FrontEnd::statfs(fuse_req_t req) {
  const auto space = repository_.space();
  if (!space) {
    fuse_reply_err(req, report("statfs", space.error()));
    return;
  }
  struct statvfs values {};
  values.f_bsize = space->block_bytes;
  values.f_frsize = space->block_bytes;
  values.f_blocks = space->blocks;
  values.f_bfree = space->blocks_free;
  values.f_bavail = space->blocks_available;
  values.f_files = space->files;
  values.f_ffree = space->files_free;
  values.f_favail = space->files_free;
  values.f_namemax = kNameBytesMax;
  fuse_reply_statfs(req, &values);
}

Result<Node> FrontEnd::resolve(fuse_ino_t ino) {
  Node node;
  if (ino == kRootNodeId) ino = root_node_;
  if (ino == kRootNodeId) return node;
  const NodeId id = unpack(ino);
  node.slot = slots_.find(id.slot);
  if (node.slot == nullptr) return Error(ErrorCode::kStale, "unknown node id");
  if (node.slot->is_series()) {
    if (id.low > kSeriesLatest || id.open) return Error(ErrorCode::kStale, "unknown node id");
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

Result<Node> FrontEnd::resolve_open(fuse_ino_t ino) {
  VARVE_TRY_ASSIGN(Node node, resolve(ino));
  switch (node.kind) {
    case Node::Kind::kOpen:
      return node;
    case Node::Kind::kSealed:
      return Error(ErrorCode::kReadOnly, "the version is sealed");
    case Node::Kind::kRemoved:
      return Error(ErrorCode::kNotFound, "the directory was removed");
    default:
      if (repository_.read_only()) return Error(ErrorCode::kReadOnly, "mounted read-only");
      return Error(ErrorCode::kNotPermitted, "only versions hold files");
  }
}

void FrontEnd::forget(fuse_ino_t ino) noexcept {
  if (ino == kRootNodeId) return;
  const NodeId id = unpack(ino);
  const Slot* slot = id.open ? slots_.find(id.slot) : nullptr;
  if (slot == nullptr) return;
  try {
    const auto writer = slot->tree().writer;
    if (auto* const removed = dynamic_cast<RemovedFiles*>(writer.get())) removed->forget(id.low);
  } catch (const std::exception&) {
    // Out of memory: the removed file stays until the version is sealed or closed.
  }
}

struct stat FrontEnd::stat_of_series(const SeriesInfo& series) const {
  Attributes attributes;
  attributes.mode = S_IFDIR | 0755;
  attributes.uid = show_.owner_uid;
  attributes.gid = show_.owner_gid;
  attributes.nlink = 2;
  attributes.mtime = attributes.ctime = attributes.atime = series.created_at;
  return make_stat(attributes, st_ino_of_series(series.id), show_);
}

struct stat FrontEnd::stat_of(const Slot& slot, const OpenEntry& entry) const {
  return make_stat(entry.attributes, st_ino_of_open(slot.series().id, slot.number(), entry.ino),
                   show_);
}

struct stat FrontEnd::stat_of(const Slot& slot, const SealedEntry& entry) const {
  return make_stat(entry.attributes,
                   st_ino_of_sealed(slot.series().id, slot.number(), entry.rank, entry.link_group),
                   show_);
}

Result<struct stat> FrontEnd::stat_of(const Node& node) {
  Attributes attributes;
  switch (node.kind) {
    case Node::Kind::kRoot:
      attributes.mode = S_IFDIR | 0755;
      attributes.uid = show_.owner_uid;
      attributes.gid = show_.owner_gid;
      attributes.nlink = 2;
      attributes.mtime = attributes.ctime = attributes.atime = mounted_at_;
      return make_stat(attributes, kRootStIno, show_);
    case Node::Kind::kSeries:
      return stat_of_series(node.slot->series());
    case Node::Kind::kLatest: {
      VARVE_TRY_ASSIGN(const VersionInfo info,
                       repository_.find_version(node.slot->series().id, "latest"));
      attributes.mode = S_IFLNK | 0777;
      attributes.uid = show_.owner_uid;
      attributes.gid = show_.owner_gid;
      attributes.size = info.name.size();
      attributes.mtime = attributes.ctime = attributes.atime = info.sealed_at;
      return make_stat(attributes, st_ino_of_latest(node.slot->series().id), show_);
    }
    case Node::Kind::kOpen: {
      VARVE_TRY_ASSIGN(const OpenEntry entry, node.writer->get(node.ino));
      return stat_of(*node.slot, entry);
    }
    case Node::Kind::kSealed: {
      VARVE_TRY_ASSIGN(const SealedEntry entry, node.reader->get(node.rank));
      return stat_of(*node.slot, entry);
    }
    case Node::Kind::kRemoved:
      if (const auto last = node.slot->removed()) return *last;
      break;
  }
  return Error(ErrorCode::kStale, "the directory was removed");
}

fuse_entry_param FrontEnd::entry_of(const Slot& slot, const OpenEntry& entry) const {
  fuse_entry_param result{};
  result.ino = pack({.slot = slot.index(), .open = true, .low = entry.ino});
  result.generation = slot.generation();
  result.attr = stat_of(slot, entry);
  result.attr_timeout = result.entry_timeout = kOpenTimeoutS;
  return result;
}

fuse_entry_param FrontEnd::entry_of(const Slot& slot, const SealedEntry& entry) const {
  fuse_entry_param result{};
  // A version's root keeps its node id from the time when the version was open, so that a shell in
  // it keeps its directory. File handles need the same id in each mount.
  const bool open_root = entry.rank == 0;
  result.ino =
      pack({.slot = slot.index(), .open = open_root, .low = open_root ? kRootIno : entry.rank});
  result.generation = slot.generation();
  result.attr = stat_of(slot, entry);
  result.attr_timeout = result.entry_timeout = kSealedTimeoutS;
  return result;
}

/// Returns how long the kernel may cache the attributes of `latest`. The kernel reads its target
/// each time, so the target is never out of date. The attributes are worth caching, because rsync
/// reads them several times per file. In a read-only mount the timeout is 0, because another
/// process seals versions and cannot notify this one.
double FrontEnd::latest_timeout_s() const { return repository_.read_only() ? 0 : kSeriesTimeoutS; }

double FrontEnd::attribute_timeout_s(const Node& node) const {
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

/// Returns the new file's attributes from the request. The version handles the group of a
/// set-group-ID directory. Varve applies access control lists and the umask: with
/// FUSE_CAP_DONT_MASK the kernel leaves them to the daemon.
Result<NewFile> FrontEnd::new_file(fuse_req_t req, const Node& directory, mode_t mode) const {
  const fuse_ctx* caller = fuse_req_ctx(req);
  NewFile file;
  file.mode = mode;
  file.uid = caller->uid;
  file.gid = caller->gid;
  if (!show_.permissions_checked || S_ISLNK(mode)) return file;
  if (directory.kind == Node::Kind::kOpen) {
    VARVE_TRY_ASSIGN(const Xattrs all, directory.writer->xattrs(directory.ino));
    const auto place = std::ranges::find(all, kDefaultAclName, &Xattr::name);
    if (place != all.end()) {
      const auto inherited = inherit_acl(place->value, mode);
      if (!inherited) return Error(ErrorCode::kCorrupt, "a default ACL cannot be understood");
      file.mode = (mode & ~0777U) | inherited->permissions;
      if (!inherited->access.empty()) {
        file.xattrs.push_back({std::string(kAccessAclName), inherited->access});
      }
      if (S_ISDIR(mode)) file.xattrs.push_back(*place);
      return file;
    }
  }
  file.mode &= ~(caller->umask & 0777U);
  return file;
}

void FrontEnd::reply_entry(fuse_req_t req, const Result<fuse_entry_param>& entry,
                           const char* operation) {
  if (entry) {
    fuse_reply_entry(req, &entry.value());
  } else {
    fuse_reply_err(req, report(operation, entry.error()));
  }
}

void FrontEnd::reply_result(fuse_req_t req, const Result<void>& result, const char* operation) {
  fuse_reply_err(req, result ? 0 : report(operation, result.error()));
}

void FrontEnd::later(fuse_req_t req, base::ThreadPool& pool, std::function<void()> work) {
  pool.run([req, work = std::move(work)] {
    try {
      work();
    } catch (const std::exception& stray) {
      base::log(base::LogLevel::kError, fmt::format("unexpected exception: {}", stray.what()));
      fuse_reply_err(req, EIO);
    }
  });
}

}  // namespace varve::fs
