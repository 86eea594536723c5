// SPDX-License-Identifier: Apache-2.0
#include "fs/front_end.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/unique_fd.h"

namespace varve::fs {
namespace {
constexpr unsigned kRequestBytesMax = 1U << 20;
constexpr unsigned kBackgroundRequestsMax = 64;
constexpr std::string_view kReadAheadKb = "4096";

/// Returns whether the kernel may cache the targets of links. The target of `latest` changes, and
/// the size of `latest` changes too. Kernels before 6.15 cut a cached target at the first size
/// seen.
bool caches_changing_links() {
  struct utsname system {};
  unsigned first = 0;
  unsigned second = 0;
  return ::uname(&system) == 0 && std::sscanf(system.release, "%u.%u", &first, &second) == 2 &&
         (first > 6 || (first == 6 && second >= 15));
}
}  // namespace

FrontEnd::FrontEnd(Repository& repository, const ShowOptions& show)
    : repository_(repository),
      nodes_(repository),
      attributes_(repository, show),
      changes_(repository, nodes_, kernel_),
      removals_(repository, show),
      beside_(repository, attributes_, changes_),
      versions_(repository, nodes_, attributes_, {changes_, removals_, beside_}),
      commands_(repository, nodes_, changes_),
      privileges_(nodes_, kernel_),
      name_operations_({nodes_, attributes_, versions_, removals_, beside_}),
      attribute_operations_(nodes_, attributes_, versions_, privileges_, removals_),
      xattr_operations_({nodes_, versions_, privileges_, kernel_}, show),
      read_operations_(nodes_, kernel_, buffers_),
      file_operations_({nodes_, attributes_, privileges_, changes_, beside_, read_operations_}),
      directory_operations_({nodes_, attributes_, versions_, removals_, buffers_}),
      responder_(repository) {}

void FrontEnd::attach(fuse_session* session, std::string mount_point) {
  kernel_.attach(session);
  mount_point_ = std::move(mount_point);
}

void FrontEnd::shut_down() {
  ending_ = true;
  responder_.shut_down();
  nodes_.files().clear();
  read_operations_.clear();
  nodes_.directories().clear();
  nodes_.slots().drop_all();
}

void FrontEnd::forget_latest() {
  const auto all = repository_.series();
  if (!all) return;
  for (const auto& series : *all) changes_.forget_latest(series.id);
}

bool FrontEnd::refuses_changes() const { return repository_.learn_fence(FenceAge::kOfFiles); }

bool FrontEnd::refuses_changes_in(fuse_ino_t parent) {
  const auto node = nodes_.resolve(parent);
  const bool has_versions =
      node && (node->kind == Node::Kind::kRoot || node->kind == Node::Kind::kSeries);
  return repository_.learn_fence(has_versions ? FenceAge::kOfVersions : FenceAge::kOfFiles);
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
  if (attributes_.keeps_latest() && caches_changing_links()) {
    connection->want |= connection->capable & FUSE_CAP_CACHE_SYMLINKS;
  }
  // Directory replies always include attributes. With READDIRPLUS_AUTO, the kernel asks only for
  // names after the first page of a directory, and then looks up each name for the attributes.
  connection->want &= ~FUSE_CAP_READDIRPLUS_AUTO;
  if (attributes_.show().permissions_checked) {
    connection->want |= connection->capable & (FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK);
  }
  connection->want |= connection->capable & (FUSE_CAP_ASYNC_READ | FUSE_CAP_READDIRPLUS |
                                             FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_EXPORT_SUPPORT);
  read_operations_.set_opens_nothing(repository_.read_only() &&
                                     (connection->capable & FUSE_CAP_NO_OPEN_SUPPORT) != 0);
  // The kernel activates the mount point's device only after receiving the reply to init(), so the
  // stat(2) inside tune_read_ahead() blocks until then.
  if (geteuid() == 0) responder_.run_in_background([this] { tune_read_ahead(); });
}

/// Raises the kernel's read-ahead. The default of 128 KiB halves the speed of sequential reads, and
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

// Only the root of the mount decides. A mount of a series or of the whole repository may show a
// version with attributes later, and the kernel would never ask for the attributes.
void FrontEnd::drop_needless_xattr_requests() {
  constexpr std::uint64_t kEntriesReadAtOnce = 100000;
  const auto root = nodes_.resolve(kRootNodeId);
  if (!root || root->kind != Node::Kind::kSealed || root->rank != 0) return;
  const auto find_out = [this, reader = root->reader] {
    const auto any = reader->may_have_xattrs([this] { return !ending_; });
    if (any && !*any) xattr_operations_.answer_nothing(false);
  };
  if (root->reader->info().entries <= kEntriesReadAtOnce) {
    find_out();
  } else {
    responder_.run_in_background(find_out);
  }
}

Result<Reply> FrontEnd::statfs() {
  VARVE_TRY_ASSIGN(const auto space, repository_.space());
  struct statvfs values {};
  values.f_bsize = space.block_bytes;
  values.f_frsize = space.block_bytes;
  values.f_blocks = space.blocks;
  values.f_bfree = space.blocks_free;
  values.f_bavail = space.blocks_available;
  values.f_files = space.files;
  values.f_ffree = space.files_free;
  values.f_favail = space.files_free;
  values.f_namemax = kNameBytesMax;
  return Reply(SpaceReply{values});
}

}  // namespace varve::fs
