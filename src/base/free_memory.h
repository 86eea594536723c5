// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <malloc.h>

namespace varve::base {

/// Gives memory that the allocator holds, but nobody uses, back to the system. glibc keeps it in
/// one arena for each thread: a large job that runs on another thread each time would otherwise
/// leave its peak in each of them. Takes some milliseconds for a GiB; for the end of such a job.
inline void return_free_memory() { ::malloc_trim(0); }

/// Bounds the free memory at the end of each arena, which return_free_memory() does not give back.
/// glibc allows twice the size of the largest block that was ever freed, up to 64 MiB for each
/// thread. A block from 1 MiB on is a mapping of its own: LMDB has tables of 1 and 2 MiB for each
/// environment, and most of their pages stay untouched if they are new. For the start of a program.
inline void bound_free_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 512 << 10);
}

}  // namespace varve::base
