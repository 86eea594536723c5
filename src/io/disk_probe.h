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

/// The speed of a disk: a fixed time per request, and a rate for the bytes.
struct DiskSpeed {
  double request_seconds = 0;
  double bytes_per_second = 0;
};

/// A file from which probe_disk() may read.
struct ProbedFile {
  std::string path;
  std::uint64_t bytes = 0;
};

/// Measures the disk with `files` by reading the files past the page cache: pieces of 64 KiB at
/// random places, and longer stretches in order. Takes about `limit` at most, and ends early on
/// `stop`. Returns nullopt if the files do not allow direct reads, or the time was too short.
[[nodiscard]] std::optional<DiskSpeed> probe_disk(FileSystem& file_system,
                                                  const std::vector<ProbedFile>& files,
                                                  std::chrono::milliseconds limit,
                                                  const std::stop_token& stop);

}  // namespace varve::io
