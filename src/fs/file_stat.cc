// SPDX-License-Identifier: Apache-2.0
#include "fs/file_stat.h"

namespace varve::fs {
namespace {
constexpr std::uint64_t kStatBlockBytes = 512;
constexpr blksize_t kPreferredIoBytes = 128 << 10;
}  // namespace

struct stat make_stat(const Attributes& attributes, std::uint64_t st_ino, const ShowOptions& show) {
  struct stat result {};
  result.st_ino = st_ino;
  result.st_mode = attributes.mode;
  if (show.umask && !S_ISLNK(attributes.mode)) result.st_mode &= ~*show.umask;
  result.st_nlink = attributes.nlink;
  result.st_uid = show.uid.value_or(attributes.uid);
  result.st_gid = show.gid.value_or(attributes.gid);
  result.st_rdev = attributes.rdev;
  result.st_size = static_cast<off_t>(attributes.size);
  result.st_blksize = S_ISREG(attributes.mode) ? kPreferredIoBytes : 4096;
  result.st_blocks =
      static_cast<blkcnt_t>((attributes.data_bytes + kStatBlockBytes - 1) / kStatBlockBytes);
  result.st_atim = to_timespec(attributes.atime);
  result.st_mtim = to_timespec(attributes.mtime);
  result.st_ctim = to_timespec(attributes.ctime);
  return result;
}

}  // namespace varve::fs
