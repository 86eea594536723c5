// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <malloc.h>

namespace varve::base {

/// Gives memory that the allocator holds, but nobody uses, back to the system. glibc keeps it in
/// one arena for each thread: a large job that runs on another thread each time would otherwise
/// leave its peak in each of them. Takes some milliseconds for a GiB; for the end of such a job.
inline void return_free_memory() { ::malloc_trim(0); }

}  // namespace varve::base
