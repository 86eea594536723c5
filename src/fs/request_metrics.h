// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/metrics.h"

namespace varve::fs {

/// The kinds of the kernel's requests.
enum class Operation : std::uint8_t {
  kLookup,
  kForget,
  kGetattr,
  kSetattr,
  kReadlink,
  kMknod,
  kMkdir,
  kUnlink,
  kRmdir,
  kSymlink,
  kRename,
  kLink,
  kCreate,
  kOpen,
  kRead,
  kWrite,
  kFlush,
  kRelease,
  kFsync,
  kLseek,
  kOpendir,
  kReaddir,
  kReaddirplus,
  kReleasedir,
  kFsyncdir,
  kStatfs,
  kSetxattr,
  kGetxattr,
  kListxattr,
  kRemovexattr,
  kFallocate,
  kIoctl,
  kCopyFileRange,  // Last: gives the number of operations.
};
inline constexpr std::size_t kOperationCount =
    static_cast<std::size_t>(Operation::kCopyFileRange) + 1;

/// Returns the name of the system call, for the log. Several operations may share a name.
[[nodiscard]] const char* log_name(Operation operation);

/// The metrics of the kernel's requests, by operation.
class RequestMetrics {
 public:
  explicit RequestMetrics(base::Metrics& registry);

  struct OfOperation {
    base::Histogram* seconds = nullptr;
    base::Counter* errors = nullptr;
  };
  [[nodiscard]] const OfOperation& of(Operation operation) const {
    return operations_[static_cast<std::size_t>(operation)];
  }
  [[nodiscard]] base::Gauge& in_progress() const { return in_progress_; }

 private:
  base::Gauge& in_progress_;
  std::array<OfOperation, kOperationCount> operations_;
};

}  // namespace varve::fs
