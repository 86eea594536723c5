// SPDX-License-Identifier: Apache-2.0
#include "fs/request_metrics.h"

namespace varve::fs {
namespace {

struct OperationName {
  Operation operation;
  const char* label;  ///< Name of the request in libfuse.
  const char* log;    ///< Name of the system call.
};

constexpr std::array<OperationName, kOperationCount> kNames = {{
    {Operation::kLookup, "lookup", "lookup"},
    {Operation::kForget, "forget", "forget"},
    {Operation::kGetattr, "getattr", "stat"},
    {Operation::kSetattr, "setattr", "setattr"},
    {Operation::kReadlink, "readlink", "readlink"},
    {Operation::kMknod, "mknod", "create"},
    {Operation::kMkdir, "mkdir", "mkdir"},
    {Operation::kUnlink, "unlink", "unlink"},
    {Operation::kRmdir, "rmdir", "rmdir"},
    {Operation::kSymlink, "symlink", "create"},
    {Operation::kRename, "rename", "rename"},
    {Operation::kLink, "link", "link"},
    {Operation::kCreate, "create", "create"},
    {Operation::kOpen, "open", "open"},
    {Operation::kRead, "read", "read"},
    {Operation::kWrite, "write", "write"},
    {Operation::kFlush, "flush", "close"},
    {Operation::kRelease, "release", "release"},
    {Operation::kFsync, "fsync", "fsync"},
    {Operation::kLseek, "lseek", "lseek"},
    {Operation::kOpendir, "opendir", "opendir"},
    {Operation::kReaddir, "readdir", "readdir"},
    {Operation::kReaddirplus, "readdirplus", "readdir"},
    {Operation::kReleasedir, "releasedir", "releasedir"},
    {Operation::kFsyncdir, "fsyncdir", "fsync"},
    {Operation::kStatfs, "statfs", "statfs"},
    {Operation::kSetxattr, "setxattr", "xattr"},
    {Operation::kGetxattr, "getxattr", "xattr"},
    {Operation::kListxattr, "listxattr", "xattr"},
    {Operation::kRemovexattr, "removexattr", "xattr"},
    {Operation::kFallocate, "fallocate", "fallocate"},
    {Operation::kIoctl, "ioctl", "ioctl"},
    {Operation::kCopyFileRange, "copy_file_range", "copy_file_range"},
}};

constexpr bool are_in_order() {
  for (std::size_t i = 0; i < kOperationCount; ++i) {
    if (kNames[i].operation != static_cast<Operation>(i)) return false;
  }
  return true;
}
static_assert(are_in_order());

}  // namespace

const char* log_name(Operation operation) {
  return kNames[static_cast<std::size_t>(operation)].log;
}

RequestMetrics::RequestMetrics(base::Metrics& registry)
    : in_progress_(registry.gauge("varve_fuse_requests_in_progress",
                                  "Requests of the kernel that are not answered yet.")) {
  for (std::size_t i = 0; i < kOperationCount; ++i) {
    const base::Metrics::Labels labels = {{"operation", kNames[i].label}};
    operations_[i].seconds = &registry.histogram(
        "varve_fuse_request_seconds", "Time from the arrival of a request to its answer.", labels);
    operations_[i].errors = &registry.counter("varve_fuse_errors_total",
                                              "Requests that were answered with an errno.", labels);
  }
}

}  // namespace varve::fs
