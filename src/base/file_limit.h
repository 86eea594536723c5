// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

namespace varve::base {

/// Lets the process have as many open files as it may: the usual soft limit of 1024 is for
/// select(2)'s sake.
inline void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace varve::base
