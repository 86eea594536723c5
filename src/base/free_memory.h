// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <malloc.h>

namespace varve::base {

/// Gives unused memory of the allocator back to the system. glibc keeps freed memory in an arena
/// per thread: a large job on changing threads would otherwise leave its peak in each arena. Takes
/// some milliseconds for a GiB; for the end of a large job.
inline void return_free_memory() { ::malloc_trim(0); }

/// Bounds the free memory at the end of each arena, which return_free_memory() does not give back.
/// glibc allows twice the size of the largest block ever freed, up to 64 MiB for each thread. A
/// block from 1 MiB on gets its own mapping: LMDB has tables of 1 and 2 MiB for each environment,
/// and most pages of a new table stay untouched. For the start of a program.
inline void bound_free_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 512 << 10);
}

}  // namespace varve::base
