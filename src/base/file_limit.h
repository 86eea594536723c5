// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace varve::base {

/// Lets the process have as many open files as it may: the usual soft limit of 1024 is for
/// select(2)'s sake. To be called before there are threads: the kernel's table of descriptors is
/// made long enough for many then, since each time it grows under several threads the one that
/// opens a file waits some 10 ms for all processors (synchronize_rcu in expand_files).
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
