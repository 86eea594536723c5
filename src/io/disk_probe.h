// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "io/file_system.h"

namespace varve::io {

/// What a disk takes for a read: so much, whatever its length, and then so many bytes a second.
struct DiskSpeed {
  double request_seconds = 0;
  double bytes_per_second = 0;
};

/// A file that probe_disk() may read from.
struct ProbedFile {
  std::string path;
  std::uint64_t bytes = 0;
};

/// Measures the disk below `files` by reading from them past the page cache: pieces of 64 KiB at
/// random places, and longer stretches in order. Takes about `limit` at most, and less if `stop`
/// is asked for. nullopt if the files cannot be read so, or too little could be seen; nothing but
/// the time is lost then.
[[nodiscard]] std::optional<DiskSpeed> probe_disk(FileSystem& file_system,
                                                  const std::vector<ProbedFile>& files,
                                                  std::chrono::milliseconds limit,
                                                  const std::stop_token& stop);

}  // namespace varve::io
