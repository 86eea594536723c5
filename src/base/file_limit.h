// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace varve::base {

/// Raises the limit on open files to the hard limit. (The usual soft limit of 1024 exists for
/// select(2).) Also makes the kernel allocate a large table of descriptors. Otherwise each growth
/// of the table makes the opening thread wait some 10 ms for all processors (synchronize_rcu in
/// expand_files). The caller must do this before it starts threads.
inline void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  constexpr int kUsualFiles = 2048;
  const int last = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, kUsualFiles - 1);
  if (last >= 0) ::close(last);
}

}  // namespace varve::base
