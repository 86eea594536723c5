// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

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

/// Returns how many descriptors one part of the process may keep open: a share of the limit,
/// between `least` and `most`.
[[nodiscard]] inline std::size_t descriptors_for(std::size_t share, std::size_t least,
                                                 std::size_t most) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = 1024;
  return std::clamp<std::size_t>(limit.rlim_cur / share, least, most);
}

}  // namespace varve::base
